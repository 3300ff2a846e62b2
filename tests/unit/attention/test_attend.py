"""The call against the formula in plain float64 loops, on every path."""

import pytest
import torch
from tests.cases import pairwise
from tests.formulas.biases import BIASES
from tests.formulas.case import Case
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes

import regard as rg
from regard.attention.engine.numerics import is_finite

W = torch.linspace(-1, 1, 11, dtype=torch.float64)


@pairwise(
    score=SCORES,
    mask=[None, "causal & lengths", "window", "prefix | causal", "where"],
    bias=[None, *BIASES],
    weighting=["softmax", "sink"],
    sizes=[Sizes(N=1), Sizes(H=6), Sizes(N=7)],
)
def test_every_score_and_mask_gives_the_formulas_context_and_lse(
    score, mask, bias, weighting, sizes
):
    kind = {"score": score, "mask": mask, "bias": bias, "weighting": weighting}
    case = Case.draw(sizes, torch.float64, **kind)
    truth, (query, key, value) = case.loops(), case.inputs
    ours, rows = case.attend(lse=True), rg.weights(query, key, **case.options())
    torch.testing.assert_close(ours.context, truth.context)
    torch.testing.assert_close(case.attend().context, truth.context)
    torch.testing.assert_close(ours.lse, truth.lse)
    if bias != "shaw with values":
        value = value.repeat_interleave(sizes.H // sizes.G, 1)
        torch.testing.assert_close(rows @ value, truth.context)


@pytest.mark.parametrize(
    ("query", "key", "leading"),
    [
        ((5, 11), (7, 11), ()),
        ((2, 5, 11), (2, 7, 11), (2,)),
        ((2, 5, 11), (7, 11), (2,)),
        ((2, 3, 5, 11), (7, 11), (2, 3)),
        ((3, 1, 4, 5, 11), (2, 2, 7, 11), (3, 2, 4)),
    ],
)
def test_leading_axes_broadcast_and_only_four_axes_group(query, key, leading):
    q, k = torch.randn(query, dtype=torch.float64), torch.randn(key, dtype=torch.float64)
    out = rg.attend(q, k)
    assert out.shape == (*leading, 5, 11)
    if k.dim() == 4:
        k = k.repeat_interleave(2, dim=1)
    want = torch.softmax(q @ k.mT / 11**0.5, dim=-1) @ k
    torch.testing.assert_close(out, want)


def test_no_keys_give_zeros_with_gradients(make_inputs):
    query, key, value = make_inputs(requires_grad=True)
    out, lse = rg.attend(query, key[:, :, :0], value[:, :, :0], return_lse=True)
    out.sum().backward()
    assert out.shape == (2, 3, 5, 13)
    assert out.eq(0).all()
    assert lse.eq(float("-inf")).all()
    assert query.grad.eq(0).all()


PATHS = [
    pytest.param("sdpa", rg.ScaledDot(), torch.float32, id="sdpa"),
    pytest.param("tiled", rg.ScaledDot(), torch.float64, id="tiled"),
    pytest.param("additive_cpu", rg.Additive(W), torch.float32, id="additive"),
    pytest.param("dot_cpu", rg.ScaledDot(), torch.float32, id="dot"),
]


@pytest.mark.parametrize(("backend", "score", "dtype"), PATHS)
@pytest.mark.parametrize("how", ["mask", "bias"])
def test_query_without_visible_keys_gets_zeros_and_finite_gradients(
    make_inputs, backend, score, dtype, how
):
    query, key, value = make_inputs(dtype=dtype, value_dim=11, requires_grad=True)
    mask, bias = torch.ones(5, 7, dtype=torch.bool), torch.zeros(5, 7, dtype=dtype)
    mask[2], bias[2] = False, float("-inf")
    options = {"mask": mask} if how == "mask" else {"bias": bias}
    out = rg.attend(query, key, value, score=score, backend=backend, **options)
    (out * torch.randn_like(out)).sum().backward()
    assert out[..., 2, :].eq(0).all()
    assert query.grad[..., 2, :].eq(0).all()
    assert all(t.grad.isfinite().all() for t in (query, key, value))


@pytest.mark.parametrize(("backend", "score", "dtype"), PATHS)
@pytest.mark.parametrize("poisoned", [1, 2], ids=["keys", "values"])
def test_nan_in_keys_hidden_from_all_reaches_neither_output_nor_gradients(
    make_inputs, backend, score, dtype, poisoned
):
    inputs = make_inputs(dtype=dtype, value_dim=11)
    clean = rg.attend(*inputs, score=score, mask=rg.lengths([4, 6]), backend=backend)
    inputs[poisoned][:, :, 6:] = float("nan")
    inputs[poisoned][0, :, 4:] = float("inf")
    leaves = [t.requires_grad_() for t in inputs]
    out = rg.attend(*leaves, score=score, mask=rg.lengths([4, 6]), backend=backend)
    out.sum().backward()
    torch.testing.assert_close(out, clean)
    assert all(t.grad.isfinite().all() for t in leaves)


@pytest.mark.parametrize(("backend", "score", "dtype"), PATHS)
@pytest.mark.parametrize("poisoned", [1, 2], ids=["keys", "values"])
def test_nan_in_a_key_reaches_only_the_queries_that_see_it(
    make_inputs, backend, score, dtype, poisoned
):
    inputs = make_inputs(dtype=dtype, queries=7)
    clean = rg.attend(*inputs, score=score, mask=rg.causal(), backend=backend)
    inputs[poisoned][:, :, 4] = float("nan")
    out = rg.attend(*inputs, score=score, mask=rg.causal(), backend=backend)
    torch.testing.assert_close(out[:, :, :4], clean[:, :, :4])
    assert out[:, :, 4:].isnan().all()


@pytest.mark.parametrize("mask", [None, rg.causal(first=0)])
@pytest.mark.parametrize("keys", [1, 5, 33])
@pytest.mark.parametrize("poisoned", [0, 1], ids=["queries", "keys"])
def test_nan_in_a_query_or_in_a_key_it_sees_is_no_zero(poisoned, keys, mask):
    inputs = [torch.randn(2, 3, n, 8) for n in (keys, keys, keys)]
    inputs[poisoned][0, 0, 0, 1] = float("nan")
    want = rg.attend(*(t.double() for t in inputs), mask=mask, backend="tiled").isnan()
    assert want.any()
    for backend in (None, "sdpa", "dot_cpu"):
        assert torch.equal(rg.attend(*inputs, mask=mask, backend=backend).isnan(), want)


@pytest.mark.parametrize("filling", [float("inf"), float("-inf"), float("nan"), 3e38])
@pytest.mark.parametrize("sizes", [(4, 8, 64, 64), (1, 2, 256, 256)], ids=["short", "sdpa"])
def test_whatever_is_in_hidden_keys_gradients_are_those_without_it(sizes, filling):
    B, H, N, M = sizes
    query, key, value = (torch.randn(B, H, n, 16) for n in (N, M, M))
    results = []
    for end in (0.0, filling):
        key[:, :, M - 5 :] = end
        leaves = [t.clone().requires_grad_() for t in (query, key, value)]
        out = rg.attend(*leaves, mask=rg.lengths([M - 5] * B))
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    for clean, filled in zip(*results, strict=True):
        torch.testing.assert_close(filled, clean)


def test_autocast_does_not_narrow_what_was_given_wide(make_inputs):
    inputs = make_inputs(dtype=torch.float32, value_dim=11)
    want = rg.attend(*inputs)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(rg.attend(*inputs), want)


def test_without_keys_or_without_width_there_is_no_division_by_zero():
    assert rg.weights(torch.ones(3, 4), torch.ones(0, 4)).shape == (3, 0)
    assert rg.weights(torch.ones(3, 0), torch.ones(2, 0)).eq(0.5).all()
    assert rg.attend(torch.ones(3, 0), torch.ones(2, 0), torch.ones(2, 3)).eq(1).all()


def test_a_boolean_tensor_joins_a_mask_from_either_side():
    eye = torch.eye(3, dtype=torch.bool)
    assert (eye & rg.causal()).draw(3, 3) == (rg.causal() & eye).draw(3, 3)
    assert (eye | rg.causal()).draw(3, 3) == (rg.causal() | eye).draw(3, 3)


def test_a_mask_does_not_follow_later_changes_of_its_tensor():
    visible = torch.ones(2, 2, dtype=torch.bool)
    mask = rg.dense(visible)
    visible[:] = False
    assert rg.weights(torch.ones(2, 3), torch.ones(2, 3), mask=mask).eq(0.5).all()


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "tiled"},
        {"score": rg.Additive(torch.linspace(-3, 3, 8))},
        {"weighting": rg.Sparsemax()},
    ],
)
@pytest.mark.parametrize("queries", [2, 9])
def test_a_backward_pass_under_autocast_is_that_of_the_forward_pass(options, queries):
    torch.manual_seed(1)
    query, key = 3 * torch.randn(1, 2, queries, 8), 3 * torch.randn(1, 2, 9, 8)
    leaves = [t.requires_grad_() for t in (query, key)]
    gradients = []
    for is_enabled in (False, True):
        out = rg.attend(*leaves, mask=rg.lengths([7]), **options)
        with torch.autocast("cpu", torch.bfloat16, enabled=is_enabled):
            gradients.append(torch.autograd.grad(out.square().sum(), leaves))
    for plain, under_autocast in zip(*gradients, strict=True):
        assert torch.equal(plain, under_autocast)


def test_an_infinite_value_reaches_those_who_see_it_as_it_is():
    query, value = torch.zeros(1, 1, 4, 2), torch.ones(1, 1, 4, 2)
    value[0, 0, 2, 0] = float("inf")
    out = rg.attend(query, query, value, mask=rg.causal(), backend="tiled")
    assert out[0, 0, :, 0].tolist() == [1, 1, float("inf"), float("inf")]


def test_a_sum_beyond_the_range_of_float16_is_no_infinity():
    assert is_finite(torch.full((70_000,), 1, dtype=torch.float16))
    assert not is_finite(torch.tensor([1, float("inf")], dtype=torch.float16))
