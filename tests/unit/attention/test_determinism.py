import pytest
import torch

from regard.attention import (
    Additive,
    Entmax15,
    Gaussian,
    Laplace,
    ScaledDot,
    alibi,
    attend,
    causal,
    documents,
    explain,
    lengths,
    relative,
    shaw,
    summarize,
    where,
    window,
)

pytestmark = pytest.mark.slow

B, H, G, N, M, D = 3, 4, 2, 307, 211, 16


def calls():
    """Every path with what it serves; each makes its own tensors, so that all need gradients."""
    bias = torch.randn(H, 1, M, requires_grad=True)
    w = torch.randn(D, requires_grad=True)
    table = torch.randn(32, H, requires_grad=True)
    distances = torch.randn(9, D, requires_grad=True)
    bandwidth = torch.tensor(3.0, requires_grad=True)
    return {
        "sdpa": ("sdpa", [], {"mask": lengths([211, 100, 7])}),
        "sdpa, Gaussian": ("sdpa", [bandwidth], {"score": Gaussian(bandwidth)}),
        "short": ("short", [], {"mask": causal(), "groups": H, "keys": 31}),
        "packed": ("packed", [], {"mask": documents(torch.arange(N) // 29), "keys": N}),
        "additive": ("additive_cpu", [w, bias], {"score": Additive(w), "bias": bias}),
        "additive, causal": ("additive_cpu", [w], {"score": Additive(w), "mask": causal()}),
        "softmax": ("dot_cpu", [bias], {"mask": causal(), "bias": bias}),
        "softmax, window": ("dot_cpu", [], {"mask": window(before=20), "dropout": 0.2}),
        "softmax, documents": (
            "dot_cpu",
            [],
            {"mask": documents(torch.arange(N) // 29) & lengths([307, 100, 7]), "keys": N},
        ),
        "softmax, Gaussian": ("dot_cpu", [bandwidth], {"score": Gaussian(4 * bandwidth)}),
        "softmax, relative": ("dot_cpu", [table], {"bias": relative(table)}),
        "entmax": ("dot_cpu", [bias], {"weighting": Entmax15(), "bias": bias, "dropout": 0.2}),
        "tiled": ("tiled", [bias], {"mask": causal(), "bias": bias}),
        "tiled, window": ("tiled", [], {"mask": window(before=20), "dropout": 0.2}),
        "tiled, Laplace": ("tiled", [bandwidth], {"score": Laplace(bandwidth), "bias": alibi()}),
        "tiled, relative": ("tiled", [table], {"bias": relative(table)}),
        "tiled, Shaw": ("tiled", [distances], {"bias": shaw(distances, distances)}),
        "tiled, entmax": ("tiled", [], {"weighting": Entmax15(), "score": ScaledDot(softcap=2.0)}),
    }


def run(name):
    """The answer of a call and all its gradients, from the same numbers each time."""
    torch.manual_seed(7)
    backend, leaves, options = calls()[name]
    options = dict(options)
    groups, keys = options.pop("groups", G), options.pop("keys", M)
    shapes = [(B, H, N, D), (B, groups, keys, D), (B, groups, keys, D)]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    assert explain(*inputs, backend=backend, **options).backend == backend
    generator = torch.Generator().manual_seed(5)
    out = attend(*inputs, backend=backend, generator=generator, **options)
    grad = torch.randn(out.shape, generator=generator)
    return [out.detach(), *torch.autograd.grad(out, [*inputs, *leaves], grad)]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", calls())
def test_twice_the_same(name, threads):
    first = run(name)
    # Memory is elsewhere the second time.
    between = [torch.empty(size) for size in (13, 1013, 100_003)]
    for one, other in zip(first, run(name), strict=True):
        assert torch.equal(one, other)
    del between


LOOKED_AT = {
    "plain": {},
    "causal": {"mask": causal(), "queries": slice(3, -7)},
    "documents": {"mask": documents(torch.arange(701) // 29)},
    "pairs": {"mask": where(lambda b, h, i, j: (i + j) % 3 > 0)},
    "Laplace": {"score": Laplace(3.0), "mask": window(before=20)},
    "ALiBi": {"bias": alibi(), "mask": lengths([701, 70])},
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_same_summary_by_any_number_of_threads(name):
    torch.manual_seed(7)
    query, key = (torch.randn(2, H, 701, D) for _ in range(2))
    before, found = torch.get_num_threads(), []
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            found.append(summarize(query, key, **LOOKED_AT[name]).tensors())
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(found[0][each], other[each]) for each in other)
