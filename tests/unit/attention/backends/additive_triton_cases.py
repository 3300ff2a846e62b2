"""The GPU kernels of additive attention under Triton's interpreter, in a process of their own.

Triton decides when it is imported whether it interprets, and others import it too.
``test_additive_triton.py`` starts the process.
"""

import os

import pytest
import torch

import regard as rg
from regard.attention.backends import additive_triton

# The interpreter computes with NumPy, which tells of infinities and NaN that are meant.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")
assert os.environ.get("TRITON_INTERPRET") == "1", "test_additive_triton.py runs these"

B, H, N, M, D, E = 2, 2, 19, 23, 5, 7
SMALL = {"ROWS": 16, "KEYS": 16, "WIDTH": 16, "DIMS": 16}
MASKS = {
    "none": None,
    "lengths": rg.lengths([20, 0]),
    "documents": rg.documents(torch.arange(N) // 6, torch.arange(M) // 9) & rg.causal(),
    "dense": rg.dense((torch.arange(H * N * M) % 7 < 3).reshape(H, N, M)),
    "nothing": rg.dense(torch.zeros(1, 1, dtype=torch.bool)),
}


@pytest.fixture(autouse=True)
def _unwritten_memory_is_nan(monkeypatch):
    new_empty, empty_like = torch.Tensor.new_empty, torch.empty_like

    def spoilt(tensor):
        return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor

    monkeypatch.setattr(torch.Tensor, "new_empty", lambda *a, **k: spoilt(new_empty(*a, **k)))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: spoilt(empty_like(*a, **k)))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(
        additive_triton, "_FORWARD", {name: SMALL[name] for name in ("ROWS", "KEYS", "WIDTH")}
    )
    monkeypatch.setattr(additive_triton, "_GRADIENT", SMALL)


def make(*, groups=H, dim=D, value_dim=E, shape=None, batch=B, heads=H, queries=N, keys=M):
    shapes = [
        (batch, heads, queries, dim),
        (batch, groups, keys, dim),
        (batch, groups, keys, value_dim),
        (dim,) if shape is None else shape,
    ]
    return [torch.randn(each) for each in shapes]


def answer(inputs, backend="additive_triton", *, dtype=torch.float32, **options):
    """Context, log-sum-exp, and the gradients of query, key, value and w, in float64."""
    leaves = [t.detach().to(dtype).requires_grad_() for t in inputs]
    if options.get("bias") is not None:
        options["bias"] = options["bias"].to(dtype)
    if "dropout" in options:
        options["generator"] = torch.Generator().manual_seed(5)
    out, lse = rg.attend(
        *leaves[:3], score=rg.Additive(leaves[3]), return_lse=True, backend=backend, **options
    )
    generator = torch.Generator().manual_seed(1)
    d_out, d_lse = (torch.randn(t.shape, generator=generator).to(t.dtype) for t in (out, lse))
    # The log-sum-exp of nothing is −∞: a loss of it would be, too.
    loss = (out * d_out).sum() + (lse.masked_fill(lse.isinf(), 0) * d_lse).sum()
    grads = torch.autograd.grad(loss, leaves)
    return [t.detach().double() for t in (out, lse, *grads)]


def check(inputs, tolerance=3e-5, **options):
    """The kernels against the tiled path in float64."""
    results = answer(inputs, **options)
    expected = answer(inputs, "tiled", dtype=torch.float64, **options)
    for result, reference in zip(results, expected, strict=True):
        scale = max(1.0, float(reference.masked_fill(reference.isinf(), 0).abs().max()))
        torch.testing.assert_close(result, reference, atol=tolerance * scale, rtol=0)
    return results


@pytest.mark.parametrize("mask", MASKS)
def test_every_mask_and_its_gradients(mask):
    # As many sentences and heads as the mask tells apart.
    batch = B if mask == "lengths" else 1
    heads = H if mask == "dense" else 1
    inputs = make(groups=1, batch=batch, heads=heads)
    out, lse, d_query, *_ = check(inputs, mask=MASKS[mask])
    if MASKS[mask] is not None:
        sees_keys = (
            MASKS[mask].bind(batch, heads, N, M).dense().expand(batch, heads, N, M).any(dim=-1)
        )
        assert torch.equal(lse == float("-inf"), ~sees_keys)
        assert out[~sees_keys].eq(0).all()
        assert d_query[~sees_keys].eq(0).all()


def test_blocks_of_queries_between_those_that_see_a_block_of_keys_are_passed_over():
    queries = torch.arange(48) // 16
    mask = rg.documents(queries, torch.tensor([0] * 8 + [2] * 8 + [1] * 8))
    inputs = make(groups=1, batch=1, heads=1, queries=48, keys=24)
    inputs[0][:, :, 16:32] += 1000
    check(inputs, mask=mask)


def test_errors_are_at_most_four_times_those_of_the_plain_formula(monkeypatch):
    monkeypatch.undo()
    inputs = make(dim=31, batch=1, heads=1, groups=1, queries=67, keys=71)
    inputs[3] *= 3
    exact = answer(inputs, "tiled", dtype=torch.float64)
    plain, ours = answer(inputs, "tiled"), answer(inputs)
    for want, one, other in zip(exact, plain, ours, strict=True):
        assert (other - want).abs().max() <= 4 * (one - want).abs().max()


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((), {"heads": 2, "groups": 1, "dim": 3, "value_dim": 2}),
        # Wider than one program's part of the hidden units and of the values.
        ((4, 1), {"heads": 4, "groups": 2, "dim": 17, "value_dim": 17}),
    ],
)
def test_shared_keys_and_w_of_every_shape(shape, sizes):
    check(make(batch=1, queries=5, keys=18, **sizes, shape=shape), mask=rg.causal())


@pytest.mark.parametrize(
    ("spread", "shift", "form", "is_shifted"),
    [
        (1, 0, additive_triton._PLAIN, False),
        (1, 200, additive_triton._PLAIN, True),
        (8, 0, additive_triton._CLAMPED, False),
        (8, 60, additive_triton._CLAMPED, True),
        (60, 0, additive_triton._SUMMED, False),
    ],
)
def test_large_queries_and_keys_stay_exact(spread, shift, form, is_shifted):
    query, key, value, w = make(batch=1, heads=1, groups=1)
    query, key = query * spread + shift, key * spread - shift
    chosen = additive_triton._Form.of(query, key)
    assert (chosen.number, chosen.shift is not None) == (form, is_shifted)
    check([query, key, value, w], tolerance=6e-5)


@pytest.mark.parametrize("reach", [10.9, 20])
def test_a_huge_unit_does_not_swallow_the_one_that_shares_its_reciprocal(reach):
    query, key, value, _ = make(dim=2, batch=1, heads=1, groups=1, queries=1)
    query[..., 0], query[..., 1] = reach, 2.4
    key[..., 0], key[..., 1] = reach, torch.linspace(2, 3, M)
    check([query, key, value, torch.tensor([1.0, 300.0])], tolerance=1e-4)


def test_nan_reaches_only_queries_that_see_it():
    query, key, value, w = make(batch=1)
    mask = rg.lengths([15]) & rg.causal(first=2)
    clean = answer([query, key, value, w], mask=mask)
    key[0, :, 19], value[0, :, 20] = float("nan"), float("inf")  # nobody sees these
    torch.testing.assert_close(answer([query, key, value, w], mask=mask), clean, atol=1e-5, rtol=0)
    key[0, 0, 5], value[0, 1, 7] = float("nan"), float("nan")  # seen from queries 3 and 5 on
    query[0, 1, 2] = float("nan")
    out, lse, d_query, d_key, d_value, _ = answer([query, key, value, w], mask=mask)
    bad = torch.zeros(H, N, dtype=torch.bool)
    bad[0, 3:], bad[1, 5:], bad[1, 2] = True, True, True
    assert torch.equal(out[0].isnan().all(dim=-1), bad)
    assert torch.equal(out[0].isnan().any(dim=-1), bad)
    assert torch.equal(d_query[0].isnan().any(dim=-1), bad)
    bad[1, 5:] = False  # whose values alone are bad
    assert torch.equal(lse[0].isnan(), bad)
    assert d_key[:, :, 15:].eq(0).all()
    assert d_value[:, :, 15:].eq(0).all()


def test_the_same_bits_come_out_twice():
    inputs = make(heads=1, groups=1, batch=1)
    first, second = (answer(inputs, mask=rg.causal(), dropout=0.3) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_dropout_has_the_pattern_of_every_other_path():
    check(make(groups=1, queries=5, keys=18), mask=rg.lengths([18, 17]), dropout=0.4)


@pytest.mark.parametrize(("batch", "heads", "shape"), [(1, H, (H, 1, M)), (B, 1, (B, 1, N, 1))])
def test_a_bias_is_added_without_being_spread_out(batch, heads, shape):
    bias = torch.randn(shape)
    bias[..., -1:] = float("-inf")
    check(make(batch=batch, heads=heads, groups=heads), bias=bias)


def test_the_gradient_does_not_depend_on_the_panels(monkeypatch):
    inputs, mask = make(groups=1, batch=1), MASKS["documents"]
    whole = answer(inputs, mask=mask)
    monkeypatch.setattr(additive_triton, "_PANEL", 1)
    torch.testing.assert_close(answer(inputs, mask=mask), whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 3e-2), (torch.float16, 4e-3)])
def test_half_precision_is_summed_in_float32(dtype, tolerance):
    inputs = [t.to(dtype) for t in make(heads=1, groups=1, batch=1)]
    results = answer(inputs, dtype=dtype, mask=rg.causal())
    expected = answer(inputs, "tiled", dtype=torch.float64, mask=rg.causal())
    torch.testing.assert_close(results, expected, atol=tolerance, rtol=tolerance)
    out, lse = rg.attend(
        *inputs[:3], score=rg.Additive(inputs[3]), backend="additive_triton", return_lse=True
    )
    assert (out.dtype, lse.dtype) == (dtype, torch.float32)


def test_gradients_have_gradients():
    def second(backend, dtype):
        leaves = [t.to(dtype).requires_grad_() for t in inputs]
        out, lse = rg.attend(
            *leaves[:3],
            score=rg.Additive(leaves[3]),
            mask=rg.causal(),
            dropout=0.2,
            generator=torch.Generator().manual_seed(3),
            backend=backend,
            return_lse=True,
        )
        loss = (out.square().sum() + lse.square().sum()) / N
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), leaves)

    inputs = make(heads=1, groups=1, batch=1)
    for one, other in zip(
        second("additive_triton", torch.float32), second("tiled", torch.float64), strict=True
    ):
        torch.testing.assert_close(one.double(), other, atol=1e-4, rtol=1e-4)
