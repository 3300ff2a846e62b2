"""Exact rows and columns, the transposed product, rollout, and gradients of all of them."""

from types import FunctionType

import pytest
import torch
from tests.formulas.biases import BIASES
from tests.formulas.case import Case
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS
from tests.unit.attention.inspect.test_summary import dense_scores, weigh

import regard as rg
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import make_weights_request
from regard.attention.inspect.weights import transposed_of
from regard.errors import SettingError, ShapeError

SIZES = Sizes(B=2, H=6, G=2, N=5, M=7, D=11, E=13)
PLACES = [3, 1, 2, -1, 3]
CASES = [
    *({"weighting": each, "mask": "lengths of queries"} for each in WEIGHTINGS),
    *({"score": each, "mask": "causal"} for each in ("additive", "laplace", "soft-cap", "box")),
    *({"bias": each, "mask": "documents of rows"} for each in BIASES),
    *({"mask": each} for each in ("dense", "where", "window", "nothing")),
]


def transposed(query, key, states, **options):
    return transposed_of(make_weights_request(query, key, CallOptions(**options)), states)


@pytest.mark.parametrize("options", CASES, ids=lambda o: "-".join(o.values()))
def test_rows_columns_and_transposed_are_those_of_the_matrix(options):
    case = Case.draw(SIZES, torch.float64, **options)
    matrix = weigh(case.weighting, dense_scores(case), *case.of_sink)
    query, key, _ = case.inputs
    options = case.options()
    torch.testing.assert_close(rg.rows(query, key, PLACES, **options), matrix[:, :, PLACES])
    columns = rg.columns(query, key, torch.tensor(PLACES), **options)
    torch.testing.assert_close(columns, matrix[..., PLACES])
    states = torch.randn(2, 1, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(transposed(query, key, states, **options), matrix.mT @ states)


def test_slices_and_no_indices():
    query, key = torch.randn(5, 11), torch.randn(7, 11)
    whole = rg.weights(query, key)
    torch.testing.assert_close(rg.rows(query, key, slice(1, 4)), whole[1:4])
    assert rg.rows(query, key, []).shape == (0, 7)
    assert rg.columns(query, key, []).shape == (5, 0)
    with pytest.raises(ShapeError, match=r"positions must be of the 5 query positions; got 5\."):
        rg.rows(query, key, [5])
    with pytest.raises(ShapeError, match=r"positions must be of the 7 key positions; got -8\."):
        rg.columns(query, key, [-8])


def test_bad_states_and_sums_are_named(unchecked_shapes):
    query, key = torch.randn(2, 5, 11), torch.randn(2, 7, 11)
    with pytest.raises(
        ShapeError, match=r"states must broadcast to .* = \(2, 5, 3\); got \(4, 3\)"
    ):
        transposed(query, key, torch.randn(4, 3))
    with pytest.raises(ShapeError, match=r"states must have axes \(N, E\) at least; got \(5,\)"):
        transposed(query, key, torch.randn(5))


@pytest.mark.parametrize("heads", [(), (3,)])
def test_rollout_is_the_product_of_the_layers(heads):
    lead = (2, *heads)
    calls = []
    with rg.observe(calls.append):
        for mask in (None, rg.causal(), rg.lengths([6, 3])):
            x = torch.randn(*lead, 7, 11, dtype=torch.float64)
            rg.attend(x, torch.randn_like(x), mask=mask)
    product = torch.eye(7, dtype=torch.float64)
    for call in calls:
        whole = rg.weights(call.query, call.key, mask=call.mask)
        mean = whole.mean(1) if heads else whole
        product = (0.3 * torch.eye(7) + 0.7 * mean) @ product
    torch.testing.assert_close(rg.rollout(calls, [6, 0], residual=0.3), product[:, [6, 0]])
    torch.testing.assert_close(rg.rollout(calls, slice(None), residual=0.3), product)


def test_rollout_refuses_what_it_cannot_follow():
    with pytest.raises(SettingError, match="calls must hold one layer at least; got none"):
        rg.rollout([], [0])
    calls = []
    with rg.observe(calls.append):
        rg.attend(torch.randn(5, 11), torch.randn(7, 11))
    with pytest.raises(ShapeError, match="over the same N = 5 positions; got 5 queries and 7 keys"):
        rg.rollout(calls, [0])
    with pytest.raises(SettingError, match="residual must be at least 0 and below 1; got 1"):
        rg.rollout(calls, [0], residual=1.0)


def tensor(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


GRADIENTS = {
    "plain": ({}, ()),
    "causal": ({"mask": rg.causal()}, ()),
    "some see nothing": ({"mask": rg.lengths([0, 3])}, ()),
    "sink": ({"weighting": lambda s: rg.Softmax(sink=s), "mask": rg.lengths([0, 3])}, ((3,),)),
    "bias": ({"bias": lambda b: b}, ((3, 1, 7),)),
    "alibi": ({"bias": rg.alibi}, ((3,),)),
    "additive": ({"score": rg.Additive}, ((4,),)),
    "sparsemax": ({"weighting": rg.Sparsemax()}, ()),
    "scores of −inf": ({"score": rg.Epanechnikov(3.5)}, ()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    options, shapes = GRADIENTS[name]
    inputs = [tensor(2, 3, 5, 4), tensor(2, 3, 7, 4), tensor(2, 1, 5, 2)]

    def call(query, key, states, *others):
        args = {
            k: v(*others) if isinstance(v, type | FunctionType) else v for k, v in options.items()
        }
        counted = torch.tensor([True, True, False, True, True])
        summary = rg.summarize(query, key, top=2, map=3, queries=counted, **args)
        tensors = [each for each in summary.tensors().values() if each.is_floating_point()]
        return (
            *(each.masked_fill(each == -torch.inf, 0) for each in tensors),
            transposed(query, key, states, **args),
            rg.rows(query, key, [1, 4], **args),
        )

    others = [tensor(*shape) for shape in shapes]
    assert torch.autograd.gradcheck(call, [*inputs, *others], fast_mode=True)


def test_top_keys_and_counts_have_no_gradient():
    summary = rg.summarize(tensor(5, 4), tensor(7, 4))
    assert summary.entropy.requires_grad
    assert not summary.top_keys.requires_grad
    assert not summary.counts.requires_grad
    assert not summary.detach().entropy.requires_grad
