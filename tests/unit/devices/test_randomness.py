from contextlib import suppress

import pytest
import torch
from tests.pretended_device import pretended

from regard.devices import preserved_randomness
from regard.devices.randomness import random_states, repeatable, set_random_states

CPU = torch.device("cpu")


@pytest.fixture
def device():
    with pretended() as device:
        yield device


def test_a_device_has_random_numbers_of_its_own(device):
    states = random_states(device)
    assert states.keys() == {"cpu", device.type}
    drawn = torch.rand(3, device=device).tolist(), torch.rand(3).tolist()
    assert drawn[0] != drawn[1]
    set_random_states(states, device)
    assert (torch.rand(3, device=device).tolist(), torch.rand(3).tolist()) == drawn


def test_a_state_of_another_device_leaves_this_one_as_it_is(device):
    states = random_states(CPU)
    before = random_states(device)[device.type]
    torch.rand(3)
    set_random_states(states, device)
    assert torch.equal(random_states(device)["cpu"], states["cpu"])
    assert torch.equal(random_states(device)[device.type], before)


def test_inside_no_number_is_used_up(device):
    before = random_states(device)
    with suppress(KeyError), preserved_randomness(device):
        torch.rand(3)
        torch.rand(3, device=device)
        raise KeyError
    after = random_states(device)
    assert all(torch.equal(after[kind], before[kind]) for kind in before)


def test_only_other_devices_are_set_to_be_deterministic(device):
    with repeatable(CPU):
        assert not torch.are_deterministic_algorithms_enabled()
    with repeatable(device):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory
