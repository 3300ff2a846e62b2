"""A thousand and more queries and keys, in prime numbers: right, and in memory that grows with N.

The formula for the memory, forward and backward, of any path::

    peak ≤ 2 · explain(...).bytes + 3 · (inputs + output) + 2 MB

``bytes`` is what a path says it takes besides; a gradient is as large as its input, and kernels
copy what they are given once more at most; 2 MB are the fixed buffers of torch's kernels.
"""

import pytest
import torch
from tests.profiling import profiled

import regard as rg

pytestmark = pytest.mark.slow

N, M, D = 2003, 3001, 32
FIXED = 2 * 2**20
IDS = torch.arange(N) // 101
SIZES = {"heads": 2, "keys": M, "dim": D, "dtype": torch.float32}
CALLS = {
    "sdpa": ("sdpa", {}),
    "sdpa, lengths": ("sdpa", {"mask": rg.lengths([M - 300])}),
    "sdpa, bias": ("sdpa", {"bias": torch.linspace(-1, 1, M)}),
    "sdpa, Gaussian": ("sdpa", {"score": rg.Gaussian(8.0)}),
    "sdpa, Gaussian in float64": ("sdpa", {"score": rg.Gaussian(1.0)}),
    "sdpa, half precision": ("sdpa", {"dtype": torch.bfloat16}),
    "sdpa, grouped": ("sdpa", {"heads": 4}),
    "packed, causal": ("packed", {"mask": rg.documents(IDS) & rg.causal(), "keys": N}),
    "short": ("short", {"keys": 61}),
    "short, dropout": ("short", {"keys": 61, "dropout": 0.1}),
    "additive, causal": (
        "additive_cpu",
        {"score": rg.Additive(torch.linspace(-1, 1, D)), "mask": rg.causal()},
    ),
    "softmax": ("dot_cpu", {}),
    "softmax, causal": ("dot_cpu", {"mask": rg.causal()}),
    "softmax, window and prefix": (
        "dot_cpu",
        {"mask": rg.window(before=50) | rg.dense(torch.arange(M) < 4)},
    ),
    "softmax, bias": ("dot_cpu", {"bias": torch.linspace(-1, 1, M, requires_grad=True)}),
    "softmax, half precision": ("dot_cpu", {"dtype": torch.bfloat16}),
    "softmax, dropout": ("dot_cpu", {"dropout": 0.1}),
    "softmax, sink": ("dot_cpu", {"weighting": rg.Softmax(sink=0.0)}),
    "entmax": ("dot_cpu", {"weighting": rg.Entmax15(), "mask": rg.causal()}),
    "softmax, relative": ("dot_cpu", {"bias": rg.relative(torch.ones(32, 2))}),
    "tiled": ("tiled", {}),
    "tiled, window and prefix": (
        "tiled",
        {"mask": rg.window(before=50) | rg.dense(torch.arange(M) < 4)},
    ),
    "tiled, grouped": ("tiled", {"heads": 4}),
    "tiled, half precision": ("tiled", {"dtype": torch.bfloat16}),
    "tiled, dropout": ("tiled", {"dropout": 0.1}),
    "tiled, Laplace": ("tiled", {"score": rg.Laplace(2.0), "dim": 8}),
    "tiled, entmax": ("tiled", {"weighting": rg.Entmax15()}),
    "tiled, ALiBi": ("tiled", {"bias": rg.alibi()}),
    "tiled, relative": ("tiled", {"bias": rg.relative(torch.ones(32, 2))}),
    "tiled, Shaw": ("tiled", {"bias": rg.shaw(torch.ones(17, D), torch.ones(17, D))}),
}


def random_inputs(name, requires_grad):
    """The backend of a call, its inputs and its options."""
    backend, options = CALLS[name]
    options = {**SIZES, **options}
    heads, keys, dim, dtype = (options.pop(each) for each in SIZES)
    shapes = [(1, heads, N, dim), (1, 2, keys, dim), (1, 2, keys, dim)]
    inputs = [torch.randn(shape).to(dtype).requires_grad_(requires_grad) for shape in shapes]
    return backend, inputs, options


def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_memory_stays_within_the_formula_and_far_from_a_matrix(name, requires_grad):
    backend, inputs, options = random_inputs(name, requires_grad)
    if backend == "short" and not requires_grad:
        pytest.skip("only where a gradient is wanted")
    plan = rg.explain(*inputs, backend=backend, **options)
    assert plan.backend == backend

    def call():
        out = rg.attend(*inputs, backend=backend, **options)
        return (out, *torch.autograd.grad(out.sum(), inputs)) if requires_grad else (out,)

    profile = profiled(call)
    # The output is as large as the queries.
    bound = 2 * plan.bytes + 3 * size_of([*inputs, inputs[0]]) + FIXED
    assert 0 < profile.peak <= bound
    if backend != "short":
        # A matrix has H · N · M numbers; no tensor comes near, nor do all together.
        matrix = 4 * inputs[0].shape[1] * N * inputs[1].shape[2]
        assert profile.largest < matrix / 4
        assert bound < matrix
