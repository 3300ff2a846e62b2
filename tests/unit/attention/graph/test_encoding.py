"""Every built-in score, mask, bias and weighting comes back from words, tensors and numbers."""

from inspect import isabstract

import pytest
import torch
from torch import Tensor

import regard as rg
from regard.attention import Mask, PositionBias, Score, Weighting
from regard.attention.graph.encoding import BUILT_IN, decode, encode, is_built_in

SCORES = [
    rg.ScaledDot(),
    rg.ScaledDot(scale=2.0, softcap=3.0),
    rg.Dot(),
    rg.Bilinear(torch.ones(2, 3)),
    rg.Cosine(0.5),
    rg.Cosine(torch.tensor(0.5)),
    rg.Additive(torch.ones(3)),
    rg.Gaussian(2.0),
    rg.Gaussian(torch.ones(3)),
    rg.Gaussian(precision=torch.eye(3)),
    rg.Laplace(torch.ones(3)),
    rg.StudentT(2.0),
    rg.Box(2.0),
    rg.Epanechnikov(2.0),
]
MASKS = [
    rg.lengths([3, 1]),
    rg.prefix(9),
    rg.causal(),
    rg.causal(first=2),
    rg.window(before=1, after=2),
    rg.documents([0, 0, 1, 2, 2]),
    rg.documents([0, 1], torch.tensor([0, 0, 1, 1, 1])),
    rg.dense(torch.eye(4, dtype=torch.bool)),
    rg.lengths(3) & ~rg.causal(),
    rg.lengths([2, 3]) | rg.window(0, 0),
]
BIASES = [
    rg.alibi(),
    rg.alibi(torch.ones(3), first=2),
    rg.relative(torch.ones(8, 3), is_bidirectional=False, max_distance=20),
    rg.shaw(torch.ones(5, 3)),
    rg.shaw(torch.ones(5, 3), torch.zeros(5, 4), scale=0.5, first=1),
]
WEIGHTINGS = [
    rg.Softmax(),
    rg.Softmax(0.5),
    rg.Softmax(torch.ones(3)),
    rg.Sparsemax(),
    rg.Entmax15(),
    rg.Hard(),
]


def flat(value):
    if isinstance(value, Tensor):
        return (value.dtype, tuple(value.shape), value.flatten().tolist())
    if isinstance(value, Score | Mask | PositionBias | Weighting):
        state = {}
        for base in type(value).__mro__:
            for name in getattr(base, "__slots__", ()):
                state[name] = getattr(value, name)
        state |= getattr(value, "__dict__", {})
        return (type(value), {name: flat(each) for name, each in state.items()})
    return (type(value), repr(value))


@pytest.mark.parametrize("value", [*SCORES, *MASKS, *BIASES, *WEIGHTINGS])
def test_a_built_in_thing_comes_back_as_it_was(value):
    assert is_built_in(value)
    (back,) = decode(encode(value))
    assert flat(back) == flat(value)


def test_the_cases_above_leave_no_class_out():
    tested = {
        BUILT_IN[word]
        for each in (SCORES, MASKS, BIASES, WEIGHTINGS)
        for value in each
        for word in encode(value).form.split()
        if word in BUILT_IN
    }
    kinds = {
        each
        for each in BUILT_IN.values()
        if issubclass(each, Mask | PositionBias) or hasattr(each, "as_dot") or hasattr(each, "rows")
    }
    complete = {
        each for each in kinds if not isabstract(each) and not getattr(each, "_is_protocol", False)
    }
    assert {each.__name__ for each in complete - tested} == {"Custom", "_Where"}


def test_several_values_share_the_lists_in_their_order():
    first, second = torch.ones(3), torch.zeros(2, 3)
    values = [
        rg.Additive(first),
        rg.causal(first=5),
        None,
        rg.Bilinear(second),
        0.25,
        True,
        7,
        "",
        "50% of %20",
    ]
    encoded = encode(*values)
    assert encoded.tensors[0] is first
    assert encoded.tensors[1] is second
    assert encoded.integers == [0, 5, 7]
    assert encoded.floats == [0.25]
    decoded = decode(encoded)
    assert [type(each) for each in decoded] == [type(each) for each in values]
    assert decoded[4:] == values[4:]


class OwnMask(Mask):
    check = cover = pairs = extent = form = None


class OwnDot(rg.Dot):
    """A user's own, though of a built-in kind."""


@pytest.mark.parametrize(
    "value",
    [
        rg.Custom(lambda q, k: q @ k.mT),
        rg.where(lambda b, h, q, k: q != k),
        rg.causal() & rg.where(lambda b, h, q, k: q != k),
        OwnDot(),
        object(),
    ],
)
def test_what_a_user_wrote_is_not_built_in(value):
    assert not is_built_in(value)
