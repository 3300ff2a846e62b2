"""A thousand and more queries and keys, in prime numbers: right, and in memory that grows with N.

The formula for the memory, forward and backward, of any path::

    peak ≤ 2 · explain(...).bytes + 3 · (inputs + output) + 2 MB

``bytes`` is what a path says it takes besides; a gradient is as large as its input, and kernels
copy what they are given once more at most; 2 MB are the fixed buffers of torch's kernels.
"""

import pytest
import torch
from tests.formulas.case import Case, assert_as_good, in_naive_dtype
from tests.formulas.sizes import Sizes
from tests.profiling import profiled

from regard.attention import (
    Additive,
    Entmax15,
    Gaussian,
    Laplace,
    Softmax,
    Sparsemax,
    alibi,
    attend,
    causal,
    dense,
    documents,
    explain,
    lengths,
    relative,
    shaw,
    where,
    window,
)

pytestmark = pytest.mark.slow

N, M, D = 2003, 3001, 32
MATRIX = 4 * 2 * N * M
FIXED = 2 * 2**20
IDS = torch.arange(N) // 101
CALLS = {
    "sdpa": ("sdpa", {}),
    "sdpa, lengths": ("sdpa", {"mask": lengths([M - 300])}),
    "sdpa, causal": ("sdpa", {"mask": causal(first=0)}),
    "sdpa, bias": ("sdpa", {"bias": torch.linspace(-1, 1, M)}),
    "sdpa, Gaussian": ("sdpa", {"score": Gaussian(8.0)}),
    "sdpa, Gaussian in float64": ("sdpa", {"score": Gaussian(1.0)}),
    "sdpa, narrow values": ("sdpa", {"value_dim": 20}),
    "sdpa, half precision": ("sdpa", {"dtype": torch.bfloat16}),
    "sdpa, grouped": ("sdpa", {"heads": 4}),
    "packed": ("packed", {"mask": documents(IDS), "keys": N}),
    "packed, causal": ("packed", {"mask": documents(IDS) & causal(), "keys": N}),
    "short": ("short", {"keys": 61}),
    "additive": ("additive_cpu", {"score": Additive(torch.linspace(-1, 1, D))}),
    "additive, causal": (
        "additive_cpu",
        {"score": Additive(torch.linspace(-1, 1, D)), "mask": causal()},
    ),
    "softmax": ("dot_cpu", {}),
    "softmax, causal": ("dot_cpu", {"mask": causal()}),
    "softmax, window": ("dot_cpu", {"mask": window(before=50, first=0)}),
    "softmax, lengths": ("dot_cpu", {"mask": lengths([M - 300])}),
    "softmax, window and prefix": (
        "dot_cpu",
        {"mask": window(before=50) | dense(torch.arange(M) < 4)},
    ),
    "softmax, where": ("dot_cpu", {"mask": where(lambda b, h, i, j: (i + j) % 3 > 0)}),
    "softmax, bias": ("dot_cpu", {"bias": torch.linspace(-1, 1, M, requires_grad=True)}),
    "softmax, grouped": ("dot_cpu", {"heads": 4}),
    "softmax, half precision": ("dot_cpu", {"dtype": torch.bfloat16}),
    "softmax, dropout": ("dot_cpu", {"dropout": 0.1}),
    "softmax, Gaussian": ("dot_cpu", {"score": Gaussian(8.0)}),
    "softmax, sink": ("dot_cpu", {"weighting": Softmax(sink=0.0)}),
    "sparsemax": ("dot_cpu", {"weighting": Sparsemax()}),
    "entmax": ("dot_cpu", {"weighting": Entmax15(), "mask": causal()}),
    "softmax, relative": ("dot_cpu", {"bias": relative(torch.ones(32, 2))}),
    "tiled": ("tiled", {}),
    "tiled, causal": ("tiled", {"mask": causal()}),
    "tiled, window": ("tiled", {"mask": window(before=50, first=0)}),
    "tiled, window and prefix": ("tiled", {"mask": window(before=50) | dense(torch.arange(M) < 4)}),
    "tiled, where": ("tiled", {"mask": where(lambda b, h, i, j: (i + j) % 3 > 0)}),
    "tiled, grouped": ("tiled", {"heads": 4}),
    "tiled, half precision": ("tiled", {"dtype": torch.bfloat16}),
    "tiled, dropout": ("tiled", {"dropout": 0.1}),
    "tiled, Laplace": ("tiled", {"score": Laplace(2.0), "dim": 8}),
    "tiled, sparsemax": ("tiled", {"weighting": Sparsemax()}),
    "tiled, entmax": ("tiled", {"weighting": Entmax15()}),
    "tiled, sink": ("tiled", {"weighting": Softmax(sink=0.0)}),
    "tiled, ALiBi": ("tiled", {"bias": alibi()}),
    "tiled, relative": ("tiled", {"bias": relative(torch.ones(32, 2))}),
    "tiled, Shaw": ("tiled", {"bias": shaw(torch.ones(17, D), torch.ones(17, D))}),
}


def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_memory_stays_within_the_formula_and_far_from_a_matrix(name, requires_grad):
    backend, options = CALLS[name]
    options = dict(options)
    heads, dtype = options.pop("heads", 2), options.pop("dtype", torch.float32)
    keys, dim = options.pop("keys", M), options.pop("dim", D)
    value_dim = options.pop("value_dim", dim)
    if backend == "short" and not requires_grad:
        pytest.skip("only where a gradient is wanted")
    shapes = [(1, heads, N, dim), (1, 2, keys, dim), (1, 2, keys, value_dim)]
    inputs = [torch.randn(shape).to(dtype).requires_grad_(requires_grad) for shape in shapes]
    plan = explain(*inputs, backend=backend, **options)
    assert plan.backend == backend

    def call():
        out = attend(*inputs, backend=backend, **options)
        return (out, *torch.autograd.grad(out.sum(), inputs)) if requires_grad else (out,)

    seen = profiled(call)
    output = heads * N * value_dim * inputs[0].element_size()
    bound = 2 * plan.bytes + 3 * (size_of(inputs) + output) + FIXED
    assert 0 < seen.peak <= bound
    if keys > 1000:
        # A matrix has H · N · M numbers; no tensor comes near, nor do all together.
        matrix = 4 * heads * N * keys
        assert seen.largest < matrix / 4
        assert bound < matrix


LONG = Sizes(B=1, H=2, G=1, N=1009, M=1511, D=3, E=5)
KINDS = [
    {},
    {"mask": "causal"},
    {"mask": "lengths & causal"},
    {"mask": "documents"},
    {"mask": "documents & causal"},
    {"mask": "window"},
    {"mask": "window elsewhere | prefix"},
    {"mask": "where"},
    {"score": "gaussian"},
    {"score": "cosine per head", "bias": "of keys"},
    {"score": "additive", "mask": "lengths"},
    {"score": "additive", "mask": "causal"},
    {"score": "laplace", "mask": "documents in disorder"},
    {"score": "student", "bias": "alibi"},
    {"weighting": "sparsemax", "mask": "window"},
    {"weighting": "entmax15"},
    {"weighting": "sink", "bias": "relative"},
    {"weighting": "hard", "mask": "causal"},
    {"bias": "shaw with values", "mask": "causal"},
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: ", ".join(kind.values()) or "plain")
def test_a_thousand_queries_and_more_keys_on_every_path(kind):
    dtype = torch.float32
    case = Case.draw(LONG, dtype, **kind)
    truth = case.as_dtype(torch.float64).formula(gradients=True)
    naive = in_naive_dtype(case).formula(gradients=True)
    for backend in [None, *case.backends(gradients=True)]:
        assert_as_good(case.attend(backend=backend, gradients=True), naive, truth)
    # Where nothing is to be differentiated, other paths serve.
    naive, truth = naive._replace(gradients=None), truth._replace(gradients=None)
    for backend in case.backends():
        assert_as_good(case.attend(backend=backend), naive, truth)
