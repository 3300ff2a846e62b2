"""Public constructors and calls given anything: they work, or one sentence says what is wrong."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch

import regard as rg
from regard import attention, layers
from regard.errors import RegardError

pytestmark = pytest.mark.usefixtures("unchecked_shapes")

NUMBERS = [True, -1, 0, 1, 2, 2.5, -0.5, float("nan"), float("inf"), -float("inf"), 10**400]
TENSORS = [
    torch.zeros(0),
    torch.zeros(2, 3),
    torch.ones(3, 2, 2),
    torch.ones(4),
    torch.tensor(0.5),
    torch.tensor(1),
    torch.tensor(True),
    torch.eye(4).long(),
]
THINGS = ["ab", "", b"ab", None, [], [1, 2], [[1, 2], [3]], [None], [0.5] * 5, ["a"], {"a": 1}]
ANYTHING = [*NUMBERS, *TENSORS, *THINGS, {1}, range(5), object(), 1j, ..., np.ones(5), [2**70] * 5]
# By which the constructor of something works, for tensors of ``inputs``.
ARGUMENTS = {
    "Additive": {"w": torch.ones(4)},
    "Bilinear": {"w": torch.eye(4)},
    "Custom": {"function": lambda query, key: query @ key.mT},
    "Gaussian": {"bandwidth": 1.0},
    "dense": {"tensor": torch.ones(5, 5, dtype=torch.bool)},
    "documents": {"query_ids": [0] * 5},
    "lengths": {"n": [5, 3]},
    "masked_softmax": {"scores": torch.zeros(2, 3, 5, 5)},
    "parse_mask": {"expression": "causal()"},
    "prefix": {"n": 2},
    "relative": {"table": torch.ones(8, 3)},
    "shaw": {"key_table": torch.ones(5, 4)},
    "where": {"visible": lambda batch, head, query, key: query >= key},
}
FAMILIES = {
    attention.Mask: "mask",
    attention.PositionBias: "bias",
    attention.Score: "score",
    attention.Weighting: "weighting",
}
CALLS = (
    "attend",
    "columns",
    "explain",
    "head_scores",
    "rows",
    "sample_key",
    "summarize",
    "weights",
)
LAYERS = [
    kind
    for name in layers.__all__
    if inspect.isclass(kind := getattr(layers, name)) and not inspect.isabstract(kind)
]


def inputs():
    return [torch.randn(2, 3, 5, 4) for _ in range(3)]


def use(made):
    """Attend by something that a constructor made."""
    for family, option in FAMILIES.items():
        if isinstance(made, family):
            query, key, value = inputs()
            rg.attend(query.requires_grad_(), key, value, **{option: made}).sum().backward()
            rg.attend(query, key, value, backend="tiled", **{option: made})
            rg.weights(query, key, **{option: made})
            repr(made)


def makers():
    """Public functions and classes that make a mask, a score, a weighting or a bias."""
    found = {}
    for name in attention.__all__:
        each = getattr(attention, name)
        if not callable(each) or inspect.isabstract(each) or name.startswith("register"):
            continue
        try:
            made = each(**ARGUMENTS.get(name, {}))
        except (TypeError, RegardError):  # it needs more, and makes none of these
            continue
        if isinstance(made, (*FAMILIES, torch.Tensor)):
            found[name] = each
    return found


def raw(function):
    """An error that is none of ours, or None; one of the caller's own function is the caller's."""
    try:
        function()
    except RegardError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_the_constructors_are_found():
    assert makers().keys() >= ARGUMENTS.keys() | {"ScaledDot", "Softmax", "alibi", "causal"}


@pytest.mark.parametrize("name", sorted(makers()))
def test_a_constructor_given_anything_says_what_is_wrong(name):
    make, right = makers()[name], ARGUMENTS.get(name, {})
    for argument, parameter in inspect.signature(make).parameters.items():
        for thing in ANYTHING if parameter.kind is not parameter.VAR_POSITIONAL else ():
            wrong = raw(lambda given={**right, argument: thing}: use(make(**given)))
            assert wrong is None, f"{name}({argument}={thing!r}): {wrong}"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_given_anything_says_what_is_wrong(name):
    call = getattr(rg, name)
    parameters = inspect.signature(call).parameters
    given = dict(zip(("query", "key", "value"), inputs(), strict=True))
    right = {argument: each for argument, each in given.items() if argument in parameters}
    right |= {"positions": [1]} if "positions" in parameters else {}
    right |= {"tokens": [1] * 5} if "tokens" in parameters else {}
    for argument, parameter in parameters.items():
        for thing in ANYTHING if parameter.kind is not parameter.VAR_KEYWORD else ():
            wrong = raw(partial(call, **{**right, argument: thing}))
            assert wrong is None, f"{name}({argument}={thing!r}): {wrong}"


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_sizes_and_rates_of_layers_are_checked(kind):
    parameters = inspect.signature(kind).parameters.values()
    sizes = {p.name: 8 for p in parameters if p.annotation is int and p.default is p.empty}
    words = {"order": "pre", "kind": "layer", "name": "mean", "activation": "relu"}
    right = sizes | {p.name: words[p.name] for p in parameters if p.name in words}
    for parameter in parameters:
        if parameter.annotation not in (int, float):
            continue
        wrong_ones = [True, "ab", b"ab", [1], -1, float("nan"), float("inf"), 10**400, 1j]
        for thing in [*wrong_ones, *([2.5] if parameter.annotation is int else [])]:
            wrong = raw(partial(kind, **{**right, parameter.name: thing}))
            if wrong is not None and "required" in wrong and "argument" in wrong:
                break  # the layer is made of other layers
            assert wrong is None, f"{kind.__name__}({parameter.name}={thing!r}): {wrong}"
