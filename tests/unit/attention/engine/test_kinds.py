"""Calls that repeat: answers of backends are cached, and for no other call."""

import gc
import weakref

import pytest
import torch

import regard as rg
from regard.attention import Backend, register_backend
from regard.attention.engine import kinds
from regard.attention.plan import BACKENDS
from regard.errors import ShapeError


class Asked(Backend):
    """Serves nothing, and records its calls."""

    def __init__(self):
        self.times = 0

    def refuse(self, request):
        self.times += 1
        return "it serves nothing"

    def bytes_beyond(self, request):
        return 0

    def run(self, request):
        raise AssertionError


class AskedOnce(Asked):
    judges_by_kind = True


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch):
    monkeypatch.setattr("regard.attention.engine.kinds.KINDS", {})
    before = dict(BACKENDS)
    yield
    BACKENDS.clear()
    BACKENDS.update(before)


class Softer(rg.Softmax):
    """A weighting that is softmax by name."""


def make(**options):
    return [torch.randn(2, 3, 5, 8, **options) for _ in range(3)]


def registered(backend):
    register_backend("asked", backend)
    return backend


@pytest.mark.parametrize("mask", [None, rg.causal(), rg.lengths([3, 5])])
def test_a_backend_that_judges_by_kind_is_called_once(mask):
    spy = registered(AskedOnce())
    for _ in range(3):
        rg.attend(*make(), mask=mask)
    assert spy.times == 1


def test_another_backend_is_called_each_time():
    spy = registered(Asked())
    for _ in range(3):
        rg.attend(*make())
    assert spy.times == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda: rg.attend(*make(requires_grad=True)),
        lambda: rg.attend(*make(dtype=torch.float64)),
        lambda: rg.attend(*make(), mask=rg.causal()),
        lambda: rg.attend(*make(), mask=rg.lengths([5, 2])),
        lambda: rg.attend(*make(), dropout=0.5),
        lambda: rg.attend(*make(), return_lse=True),
        lambda: rg.attend(*make(), bias=torch.zeros(5)),
        lambda: rg.attend(*make(), score=rg.ScaledDot(softcap=2.0)),
        lambda: rg.attend(*make(), score=rg.Dot()),
        lambda: rg.attend(*make(), weighting=Softer()),
        lambda: rg.attend(*(t[:, :, :4] for t in make())),
    ],
)
def test_a_call_of_another_kind_is_judged_anew(other):
    spy = registered(AskedOnce())
    rg.attend(*make())
    other()
    assert spy.times == 2


def test_gradients_that_are_switched_off_make_another_kind():
    spy, inputs = registered(AskedOnce()), make(requires_grad=True)
    for _ in range(2):
        rg.attend(*inputs)
        with torch.no_grad():
            rg.attend(*inputs)
    assert spy.times == 2


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("mask", [None, rg.causal()])
def test_errors_are_raised_for_calls_like_earlier_valid_ones(mask):
    query, key, value = make()
    rg.attend(query, key, value, mask=mask)
    for wrong, message in [
        ((query, key, value[:, :, :4]), "value must have as many positions as key, M = 5; got 4"),
        ((query, key.double(), value), "must have one dtype"),
        ((query, key, value.tolist()), "value must be a tensor; got list"),
        ((query, key[..., :4], value), "key must be as wide as query, D = 8; got 4"),
    ]:
        with pytest.raises(ShapeError, match=message):
            rg.attend(*wrong, mask=mask)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(kinds, "_MOST", 3)
    known: dict = {}
    monkeypatch.setattr("regard.attention.engine.kinds.KINDS", known)
    mask = rg.causal()
    for score in [rg.ScaledDot(scale=each / 10) for each in range(1, 9)]:
        rg.attend(*make(), score=score)
        rg.attend(*make(), score=score, mask=mask)
    assert len(known) <= 3
    assert len(mask.bind((2,), 3, 5, 5, torch.device("cpu")).cache) <= 3


def test_nothing_that_is_remembered_keeps_tensors_or_masks():
    inputs, mask = make(requires_grad=True), rg.lengths([3, 5])
    rg.attend(*inputs, mask=mask)
    rg.attend(*inputs)
    left = [weakref.ref(each) for each in (*inputs, mask, mask.n)]
    del inputs, mask
    gc.collect()
    assert [each() for each in left] == [None] * 5
