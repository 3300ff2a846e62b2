import pytest
import torch
from torch import nn

from regard.training.optimization import MovingAverage


def test_early_weights_are_soon_forgotten():
    model = nn.Linear(1, 1, bias=False)
    average = MovingAverage(model, 0.99)
    nn.init.constant_(model.weight, 1.0)
    value = average.weights["weight"].item()
    for update in range(1, 200):
        average.update(model, update)
        decay = min(0.99, (1 + update) / (10 + update))
        value = decay * value + (1 - decay)
        assert average.weights["weight"].item() == pytest.approx(value, rel=1e-5)
    assert value == pytest.approx(1, abs=1e-6)


def test_averages_are_the_weights_inside_the_block_only():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    before = {name: p.clone() for name, p in model.named_parameters()}
    average.load({name: torch.full_like(p, 7.0) for name, p in before.items()})
    with average.installed(model):
        assert all((p == 7).all() for p in model.parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
    with pytest.raises(KeyError), average.installed(model):
        raise KeyError
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])


def test_averages_do_not_share_memory_with_the_weights():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.5)
    kept = average.weights["weight"].clone()
    nn.init.zeros_(model.weight)
    assert torch.equal(average.weights["weight"], kept)
