"""Compiled attention over dot products: its tiles, tasks and sums, and what it leaves alone."""

import pytest
import torch
from tests.cases import pairwise

import regard as rg
from regard.attention.backends import dot_cpu
from regard.attention.engine import dot
from regard.attention.masks.grid import KeyRanges
from regard.kernels import threads

B, H, G, N, M, D, E = 2, 4, 2, 301, 523, 16, 11
MASKS = {
    "none": None,
    "causal": rg.causal(),
    "window": rg.window(before=40, after=3),
    "window elsewhere": rg.window(before=5, after=5, first=-20),
    "lengths": rg.lengths([100, 523]),
    "keys in the middle": rg.lengths([500, 523]) & ~rg.prefix(70),
    "keys with gaps": rg.dense(torch.arange(M) % 7 > 1),
    "lengths & causal": rg.lengths([0, 300]) & rg.causal(),
    "documents": rg.documents(torch.arange(N) // 37, torch.arange(M) // 61),
    "documents in another order": rg.documents(torch.arange(N) // 37, 8 - torch.arange(M) // 61),
    "documents of rows": rg.documents(torch.arange(B * N).view(B, N) // 40, torch.arange(M) // 9),
    "beyond all keys": rg.causal(first=2 * M),
    "lengths of queries": rg.lengths(torch.arange(B * N).view(B, N) % M),
    "prefix | causal": rg.prefix(31) | rg.causal(first=0),
    "window and first keys": rg.window(before=9) | rg.dense(torch.arange(M) < 4),
    "dense": rg.dense(torch.rand(B, H, N, M, generator=torch.Generator().manual_seed(1)) < 0.3),
}
BIASES = {
    "of pairs": (B, H, N, M),
    "of heads": (1, H, N, M),
    "of batch rows": (B, 1, N, M),
    "of all": (1, 1, N, M),
    "of keys": (B, 1, 1, M),
    "of heads' keys": (1, H, 1, M),
}


def make(**sizes):
    sizes = {"B": B, "H": H, "G": G, "N": N, "M": M, "D": D, "E": E, **sizes}
    torch.manual_seed(1)
    shapes = ("BHND", "BGMD", "BGME")
    return [torch.randn([sizes[c] for c in s], requires_grad=True) for s in shapes]


def answer(backend, inputs, leaves=(), return_lse=True, **options):
    """The mixed values, the log-sum-exp and the gradients of everything."""
    torch.manual_seed(3)
    result = rg.attend(*inputs, backend=backend, return_lse=return_lse, **options)
    outs = list(result) if return_lse else [result]
    grads = [torch.randn_like(out) * out.isfinite() for out in outs]
    return [*outs, *torch.autograd.grad(outs, [*inputs, *leaves], grads)]


def assert_like_tiled(inputs, leaves=(), **options):
    options.setdefault("return_lse", isinstance(options.get("weighting", rg.Softmax()), rg.Softmax))
    ours, theirs = (answer(b, inputs, leaves, **options) for b in ("dot_cpu", "tiled"))
    for one, other in zip(ours, theirs, strict=True):
        size = float(other.detach()[other.isfinite()].abs().max()) if other.isfinite().any() else 0
        torch.testing.assert_close(one, other, atol=1e-5 * max(1, size), rtol=1e-5)


@pytest.mark.parametrize("reach", [9, 300])
def test_any_range_of_keys_for_each_query(monkeypatch, reach):
    first = torch.randint(-5, M, (B, N), dtype=torch.int32)
    stop = first + torch.randint(-2, reach, (B, N), dtype=torch.int32)
    monkeypatch.setattr(dot_cpu, "_ranges_of", lambda mask: KeyRanges(first, stop))
    keys = torch.arange(M)
    visible = (keys >= first[..., None]) & (keys < stop[..., None])
    assert_like_tiled(make(), mask=rg.dense(visible[:, None]))


@pairwise(mask=MASKS, weighting=[rg.Softmax(), rg.Sparsemax(), rg.Entmax15()], dropout=[0.0, 0.3])
def test_every_form_of_mask(mask, weighting, dropout):
    assert_like_tiled(make(), mask=MASKS[mask], weighting=weighting, dropout=dropout)


@pairwise(
    bias=BIASES,
    mask=["none", "window", "lengths & causal"],
    weighting=[rg.Softmax(), rg.Entmax15()],
)
def test_every_form_of_bias(bias, weighting, mask):
    added = torch.randn(BIASES[bias], requires_grad=True)
    assert_like_tiled(make(), [added], bias=added, weighting=weighting, mask=MASKS[mask])


@pytest.mark.parametrize("first", [None, 0, 7])
def test_rules_of_distances(first):
    table, slopes = torch.randn(32, H, requires_grad=True), torch.rand(H, requires_grad=True)
    inputs = make()
    assert_like_tiled(
        inputs, [table], bias=rg.relative(table, first=first), mask=rg.causal(first=first)
    )
    assert_like_tiled(inputs, [slopes], bias=rg.alibi(slopes, first=first))


@pytest.mark.parametrize("sizes", [{"N": 1}, {"M": 1}, {"B": 40, "N": 7, "M": 11}, {"G": 1}])
def test_few_queries_few_keys_and_many_batch_rows(sizes):
    assert_like_tiled(make(**sizes), mask=rg.causal())


@pairwise(
    blocks=[(1, 3, 1), (5000, 7, 2**16), (2**24, 512, 2**40)],
    parts=[1, 3, 64],
    weighting=[rg.Softmax(), rg.Entmax15()],
    mask=["causal", "lengths & causal", "documents"],
)
def test_the_answer_does_not_depend_on_blocks_and_tasks(
    monkeypatch, blocks, parts, weighting, mask
):
    pairs, rows, task = blocks
    monkeypatch.setattr(dot_cpu, "_PAIRS", pairs)
    monkeypatch.setattr(dot_cpu, "_ROWS", rows)
    monkeypatch.setattr(dot, "_TASK", task)
    monkeypatch.setattr(dot, "MOST_PARTS", parts)
    monkeypatch.setattr(dot, "_NARROW_TILE", 4)
    monkeypatch.setattr(dot, "_FEWEST", 4)
    monkeypatch.setattr(dot, "_SCORES", 1)
    of_pairs, of_keys, table = (
        torch.randn(shape, requires_grad=True) for shape in [(1, 1, 19, 23), (B, 1, 1, 23), (32, H)]
    )
    leaf, bias, visible = {
        "causal": (of_keys, of_keys, rg.causal()),
        "lengths & causal": (of_pairs, of_pairs, rg.lengths([17, 23]) & rg.causal()),
        "documents": (
            table,
            rg.relative(table),
            rg.documents(torch.arange(19) // 5, torch.arange(23) // 6),
        ),
    }[mask]
    options = {"bias": bias, "weighting": weighting, "mask": visible, "dropout": 0.3}
    assert_like_tiled(make(N=19, M=23), [leaf], **options)


@pytest.mark.parametrize(
    "mask", [rg.window(before=30, after=0), rg.documents(torch.arange(M) // 50)]
)
def test_keys_that_no_query_of_a_tile_sees_are_not_read(monkeypatch, mask):
    monkeypatch.setattr(dot_cpu, "is_finite", lambda tensor: True)
    query, key, value = make(N=M)
    with torch.no_grad():
        key[:, :, 200] = value[:, :, 200] = float("nan")
    out = rg.attend(query, key, value, mask=mask, backend="dot_cpu")
    (grad,) = torch.autograd.grad(out.sum(), query)
    for each in (out, grad):
        assert each[:, :, :128].isfinite().all()
        assert each[:, :, 320:].isfinite().all()
        assert each[:, :, 200].isnan().all()


def test_scores_beyond_all_bounds():
    query, key, value = make()
    assert_like_tiled([query, key, value], score=rg.ScaledDot(scale=20.0))
    bias = torch.zeros(N, M)
    bias[5], bias[:, 7] = float("-inf"), float("-inf")
    assert_like_tiled([query, key, value], bias=bias)
    out = rg.attend(query * 1e30, key * 1e30, value, backend="dot_cpu")
    assert out.isnan().any()


def test_a_score_that_is_a_dot_product_up_to_a_number_of_each_query():
    query, key, value = make()
    outs = [
        rg.attend(query, key, value, score=rg.Gaussian(9.0), backend=b)
        for b in ("dot_cpu", "tiled")
    ]
    torch.testing.assert_close(*outs, atol=1e-5, rtol=1e-5)
    refused = rg.explain(query, key, value, score=rg.Gaussian(9.0), return_lse=True)
    assert refused.backend == "tiled"
    assert "which its sum needs" in refused.reason


@pairwise(
    bias=[None, "of pairs", "of keys", "of heads' keys", "of distances"],
    mask=["none", "window", "keys with gaps"],
    bandwidths=[torch.tensor(6.0), torch.linspace(5, 9, H).unsqueeze(1)],
)
def test_a_number_of_each_key_with_masks_and_biases(bias, mask, bandwidths):
    leaves = [bandwidths.clone().requires_grad_()]
    options = {"score": rg.Gaussian(leaves[0]), "mask": MASKS[mask], "return_lse": False}
    if bias == "of distances":
        options["bias"] = rg.alibi()
    elif bias is not None:
        options["bias"] = torch.randn(BIASES[bias], requires_grad=True)
        leaves.append(options["bias"])
    assert_like_tiled(make(), leaves, **options)


@pytest.mark.parametrize(
    ("dtype", "options", "reason"),
    [
        (torch.float64, {}, "float32 and less"),
        (torch.float32, {"score": rg.Laplace(1.0)}, "not a dot product"),
        (torch.float32, {"score": rg.Gaussian(0.01)}, "needs float64"),
        (torch.float32, {"weighting": rg.Hard()}, "neither softmax nor compiled"),
        (torch.float32, {"bias": rg.shaw(torch.zeros(5, D))}, "more than distances"),
        (torch.float32, {"bias": torch.zeros(N, 1)}, "the same for all keys"),
    ],
)
def test_what_it_refuses(dtype, options, reason):
    inputs = [t.to(dtype) for t in make()]
    plan = rg.explain(*inputs, dropout=0.1, **options)
    assert plan.backend == "tiled"
    assert reason in plan.reason


def test_another_blas_is_named_and_the_other_path_serves(monkeypatch):
    monkeypatch.setattr(threads, "address_of_products", lambda: None)
    plan = rg.explain(*make(), return_lse=True)
    assert plan.backend == "tiled"
    assert "another BLAS" in plan.reason


def test_too_little_to_do():
    query, key, value = make(N=3, M=5)
    with torch.no_grad():
        assert rg.explain(query, key, value, return_lse=True).backend == "tiled"
    assert rg.explain(query, key, value, return_lse=True).backend == "dot_cpu"
