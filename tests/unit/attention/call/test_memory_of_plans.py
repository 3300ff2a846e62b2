"""Calls that repeat: their plans are remembered, and for no other call."""

import gc
import weakref

import pytest
import torch

import regard as rg
from regard.attention import Backend, Refusal, register_backend
from regard.attention.call import plan
from regard.attention.call.choice import BACKENDS
from regard.attention.masks.bound import Memory
from regard.errors import ShapeError


class Asked(Backend):
    """Serves nothing, and records its calls."""

    def __init__(self):
        self.times = 0

    def offer(self, request):
        self.times += 1
        return Refusal("it serves nothing")


class AskedOnce(Asked):
    ignores_numbers = True


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch):
    monkeypatch.setattr(plan, "MEMORY", Memory())
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
def test_a_backend_that_ignores_numbers_is_asked_once(mask):
    spy = registered(AskedOnce())
    for _ in range(3):
        rg.attend(*make(), mask=mask)
    assert spy.times == 1


def test_another_backend_is_asked_each_time():
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


def test_what_was_not_used_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(plan, "MEMORY", memory := Memory(most=6))
    spy, mask = registered(AskedOnce()), rg.lengths([3, 5])
    scores = [rg.ScaledDot(scale=float(each)) for each in range(1, 5)]
    for score in scores:
        rg.attend(*make(), score=score)
        rg.attend(*make(), score=score, mask=mask)
        rg.attend(*make(), score=scores[0])
    assert len(memory) <= 6
    spy.times = 0
    for score in (scores[0], scores[3], scores[1]):
        rg.attend(*make(), score=score)
    assert spy.times == 1


def test_a_mask_holds_nothing_that_is_worked_out():
    for mask in (rg.causal(), rg.causal() & rg.documents([0, 0, 1, 1, 1])):
        before = dict(vars(mask))
        for _ in range(2):
            rg.attend(*make(), mask=mask)
        assert vars(mask) == before


def test_nothing_that_is_remembered_keeps_tensors_or_masks():
    inputs, mask = make(requires_grad=True), rg.lengths([3, 5])
    rg.attend(*inputs, mask=mask)
    rg.attend(*inputs)
    left = [weakref.ref(each) for each in (*inputs, mask, mask.n)]
    del inputs, mask
    gc.collect()
    assert [each() for each in left] == [None] * 5


def test_a_mask_where_one_that_is_gone_was_is_another():
    inputs, answers = make(), {}
    for length in [1, 5, 3] * 20:  # each is made in the place of the one before
        out = rg.attend(*inputs, mask=rg.lengths([length, length]))
        assert torch.equal(answers.setdefault(length, out), out)
    assert len(plan.MEMORY) == 0


def test_entries_are_dropped_with_their_mask_alone():
    memory, one, other = Memory(), rg.lengths([3]), rg.lengths([3])
    for mask, value in ((one, 1), (other, 2), (None, 3)):
        memory.keep(mask, 0, "key", value)
    del one, mask
    gc.collect()
    assert len(memory) == 2
    assert memory.get(other, 0, "key") == 2
    assert memory.get(None, 0, "key") == 3
    assert memory.get(rg.lengths([3]), 0, "key") is None


def test_a_backend_for_another_kind_of_device_is_passed_over():
    class Elsewhere(AskedOnce):
        device = "mps"

    spy = registered(Elsewhere())
    assert "not asked, since it is for mps" in rg.explain(*make()).reason
    assert spy.times == 0
