"""An observer that summarises a call mixes its values in the same pass: one output for both."""

from dataclasses import replace

import pytest
import torch
from tests.cases import pairwise
from tests.formulas.biases import BIASES
from tests.formulas.case import Case, assert_as_good
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes

import regard as rg
from regard.attention import PositionBias
from regard.attention.observing import AttentionCall, Edit, editing

SIZES = Sizes(B=2, H=3, G=3, N=5, M=7, D=11, E=13)
OPTIONS = {"top": 3, "map": 4, "queries": None, "start": (0, 0)}


def watched(query, key, value, **options):
    """The output of ``attend``, and of its observer the summary and whether it gave the output."""
    seen = []

    def see(call):
        summary = call.summary_in_passing(**OPTIONS)
        seen.append((summary, call.mixed is not None and call.mixed.out is not None))

    with torch.no_grad(), rg.observe(see):
        out = rg.attend(query, key, value, **options)
    return out, *seen[0]


@pairwise(
    score=SCORES,
    mask=[None, *MASKS, "causal & lengths", "window | prefix"],
    bias=[None, *BIASES],
    weighting=["softmax", "sink", "sparsemax"],
    sizes=[SIZES, SIZES._replace(H=6, G=2)],
)
def test_the_output_is_that_of_the_loops_and_the_summary_the_same(
    score, mask, bias, weighting, sizes
):
    case = Case.draw(sizes, torch.float32, score=score, mask=mask, bias=bias, weighting=weighting)
    out, summary, is_mixed = watched(*case.inputs, **case.options())
    is_rule = isinstance(case.options()["bias"], PositionBias)
    assert is_mixed == (weighting != "sparsemax" and not is_rule)
    answer = case.formula()._replace(context=out)
    assert_as_good(answer, case.formula(), case.loops())
    alone = rg.summarize(*case.inputs[:2], **case.options(), top=3, map=4)
    torch.testing.assert_close(summary.tensors(), alone.tensors(), rtol=0, atol=0)


@pytest.mark.parametrize("mask", [None, "causal", "window", "documents of rows", "where", "dense"])
def test_many_keys_in_parts(mask):
    sizes = SIZES._replace(B=1, N=211, M=1301)
    case = Case.draw(sizes, torch.float32, mask=mask)
    out, _, is_mixed = watched(*case.inputs, **case.options())
    assert is_mixed
    truth = case.as_dtype(torch.float64).formula()
    assert_as_good(case.formula()._replace(context=out), case.formula(), truth)


def test_what_else_is_wanted_is_left_to_attend():
    inputs = [torch.randn(1, 2, 5, 11) for _ in range(3)]
    assert watched(*inputs)[2]
    assert not watched(*(each.double() for each in inputs))[2]
    for options in ({"dropout": 0.5}, {"return_lse": True}, {"backend": "tiled"}):
        assert not watched(*inputs, **options)[2]
    seen: list[AttentionCall] = []
    with rg.observe(lambda call: seen.append(replace(call))):
        rg.attend(*inputs)  # with gradients
    assert seen[0].mixed is None


def test_nan_in_a_hidden_value_reaches_nothing():
    query, key, value = (torch.randn(2, 3, 7, 11) for _ in range(3))
    with_nan = value.clone()
    with_nan[:, :, 6] = torch.nan
    out, _, is_mixed = watched(query, key, with_nan, mask=rg.causal())
    assert not is_mixed
    expected = rg.attend(query, key, value, mask=rg.causal())
    torch.testing.assert_close(out[:, :, :6], expected[:, :, :6])
    # A key that is NaN leaves no weight where it is hidden, and NaN where it is seen.
    key = key.clone()
    key[:, :, 6] = torch.nan
    out, _, is_mixed = watched(query, key, value, mask=rg.causal())
    assert is_mixed
    assert out[:, :, :6].isfinite().all()
    assert out[:, :, 6].isnan().all()


def test_queries_that_see_nothing_get_zeros():
    query, key, value = torch.randn(2, 5, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 13)
    out, _, is_mixed = watched(query, key, value, mask=rg.lengths([0, 3]))
    assert is_mixed
    assert (out[0] == 0).all()
    torch.testing.assert_close(out[1], rg.attend(query[1], key[1, :3], value[1, :3]))


def test_an_edited_call_is_left_to_attend():
    inputs = [torch.randn(1, 2, 5, 11) for _ in range(3)]
    double = Edit(None, lambda out, value: 2 * out)
    with editing(lambda call: double):
        out, _, is_mixed = watched(*inputs)
    assert not is_mixed
    torch.testing.assert_close(out, 2 * rg.attend(*inputs))
