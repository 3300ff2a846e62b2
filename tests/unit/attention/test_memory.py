"""A thousand and more queries and keys, in prime numbers: right, and in memory that grows with N.

The formula for the memory, forward and backward, of any path::

    peak ≤ 2 · explain(...).bytes + 3 · (inputs + output) + 2 MB

``bytes`` is what a path says it takes besides; a gradient is as large as its input, and kernels
copy what they are given once more at most; 2 MB are the fixed buffers of torch's kernels.
"""

import pytest
import torch
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
