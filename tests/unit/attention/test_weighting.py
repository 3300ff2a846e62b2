"""Weightings against their definitions, and in the engine."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention import Additive, Entmax15, Hard, Softmax, Sparsemax, attend, lengths, weights
from regard.errors import ShapeError


def by_bisection(scores, weight):
    """Weights of one row: the threshold that makes them sum to one, found by halving."""
    low, high = scores.max() - 10, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weight(scores - middle).sum() > 1 else (low, middle)
    return weight(scores - low)


DEFINITIONS = {
    Sparsemax(): lambda rest: rest.clamp_min(0),
    # With scores halved and the threshold too: max(0, s/2 − τ)².
    Entmax15(): lambda rest: (rest / 2).clamp_min(0) ** 2,
}


@pytest.mark.parametrize("weighting", DEFINITIONS)
def test_rows_are_those_of_the_definition(weighting):
    scores = 3 * torch.randn(40, 9, dtype=torch.float64)
    scores[::3, 4:] = float("-inf")
    for row, got in zip(scores, weighting.rows(scores), strict=True):
        torch.testing.assert_close(got, by_bisection(row, DEFINITIONS[weighting]))


def test_sparse_weightings_leave_keys_out_that_softmax_does_not():
    scores = torch.tensor([[0.0, -0.9, -1.5, -2.5]])
    kept = [(w.rows(scores) > 0).sum().item() for w in (Hard(), Sparsemax(), Entmax15(), Softmax())]
    assert kept == [1, 2, 3, 4]


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15()])
@pytest.mark.parametrize("additive", [False, True])
def test_gradients_through_the_engine(make_inputs, weighting, additive):
    w = torch.randn(11, dtype=torch.float64, requires_grad=True)

    def call(query, key, value, w):
        score = {"score": Additive(w)} if additive else {}
        return attend(query, key, value, weighting=weighting, mask=lengths([4, 0]), **score)

    inputs = (*make_inputs(requires_grad=True), w)
    assert gradcheck(call, inputs, fast_mode=True)


def test_hard_attention_gives_the_best_keys_value_and_trains_values_only(make_inputs):
    query, key, value = make_inputs(requires_grad=True)
    out = attend(query, key, value, weighting=Hard())
    best = (query @ key.mT).argmax(-1)
    torch.testing.assert_close(out, value.gather(2, best[..., None].expand(2, 3, 5, 13)))
    out.sum().backward()
    assert value.grad.sum() == out.numel()
    assert query.grad.eq(0).all()


def test_of_equal_scores_the_first_is_best():
    assert Hard().rows(torch.tensor([[1.0, 2.0, 2.0]])).tolist() == [[0, 1, 0]]


def test_a_nan_is_seen_and_not_picked():
    assert Hard().rows(torch.tensor([[1.0, float("nan")]])).isnan().any()


@pytest.mark.parametrize("sink", [0.0, torch.tensor([0.5, -1.0, 2.0])])
@pytest.mark.parametrize("additive", [False, True])
def test_a_sink_is_a_key_whose_value_is_zero(make_inputs, sink, additive):
    query, key, value = make_inputs()
    w = torch.randn(11, dtype=torch.float64)
    options = {"score": Additive(w)} if additive else {}
    options["mask"] = lengths([4, 0])
    rows = weights(query, key, **options)
    _, lse = attend(query, key, value, return_lse=True, **options)
    scores = rows.log() + lse[..., None]
    first = torch.as_tensor(sink).double().reshape(-1, 1, 1).expand(2, 3, 5, 1)
    want = torch.cat([first, scores.nan_to_num(float("-inf"))], -1).softmax(-1)[..., 1:]
    softmax = Softmax(sink=sink)
    torch.testing.assert_close(weights(query, key, weighting=softmax, **options), want)
    out, total = attend(query, key, value, weighting=softmax, return_lse=True, **options)
    torch.testing.assert_close(out, want @ value)
    torch.testing.assert_close(total, torch.logaddexp(lse, first[..., 0]))
    plain = attend(query, key, value, weighting=softmax, **options)
    assert torch.equal(plain, out)


def test_a_sink_of_a_class_made_from_softmax_counts(make_inputs):
    class Named(Softmax):
        pass

    query, key, value = make_inputs()
    found, right = (
        attend(query, key, value, weighting=kind(sink=0.5)) for kind in (Named, Softmax)
    )
    torch.testing.assert_close(found, right)
    assert not torch.allclose(found, attend(query, key, value))


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_sink_has_a_number_for_each_head(make_inputs):
    with pytest.raises(ShapeError, match=r"sink must have shape \(\) or \(H,\) = \(3,\); got \(4,"):
        attend(*make_inputs(), weighting=Softmax(sink=torch.zeros(4)))


@pytest.mark.parametrize("weighting", [Sparsemax(), Entmax15()], ids=repr)
def test_a_row_of_nan_stays_one(weighting):
    rows = weighting.rows(torch.tensor([[torch.nan, 1.0], [0.0, 0.0]]))
    assert rows[0].isnan().all()
    assert rows[1].tolist() == pytest.approx([0.5, 0.5])
