"""A model is made ready once, until it is another."""

import pytest
import torch
from torch import nn

from regard.attention import observe
from regard.inference import preparation
from regard.inference.preparation import Preparation


class Made(nn.Module):
    """Stand-in for a prepared model."""


@pytest.fixture
def ready(monkeypatch):
    """A preparation, and the models it was made of."""
    made = []
    monkeypatch.setattr(preparation, "prepared", lambda model: made.append(model) or Made())
    return Preparation(), made


def model():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))


def load(given):
    given.load_state_dict({name: each + 1 for name, each in given.state_dict().items()})


CHANGES = {
    "learn": lambda given: given[0].weight.detach().add_(1),
    "swap": lambda given: setattr(given[0].weight, "data", torch.zeros(2, 3)),
    "replace": lambda given: given.__setitem__(0, nn.Linear(3, 2)),
    "buffer": lambda given: given[1].running_mean.add_(1),
    "load": load,
    "train": lambda given: given[2].train(),
}


@pytest.mark.parametrize(
    ("change", "times"),
    [(lambda given: given.eval(), 1), *((change, 2) for change in CHANGES.values())],
    ids=["nothing", *CHANGES],
)
def test_it_is_made_again_when_it_is_another(change, times, ready):
    preparing, made = ready
    given = model()
    first = preparing.of(given)
    assert not given.training
    assert preparing.of(given) is first
    change(given)
    second = preparing.of(given)
    assert (second is first) == (times == 1)
    assert preparing.of(given) is second
    assert made == [given] * times
    assert not any(each.training for each in given.modules())


def test_nothing_is_kept_while_somebody_observes(ready):
    preparing, made = ready
    given = model()
    kept = preparing.of(given)
    with observe(lambda call: None):
        assert preparing.of(given) is not kept
    assert preparing.of(given) is kept
    assert len(made) == 2


def test_what_was_made_in_inference_mode_is_kept(ready):
    preparing, made = ready
    with torch.inference_mode():
        given = model()
        first = preparing.of(given)
        assert preparing.of(given) is first
    assert len(made) == 1
