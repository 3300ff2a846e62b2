"""Random numbers of a device, kept and given back; and arithmetic that repeats itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, cast

import torch
from torch import Tensor
from torch.utils import deterministic

from regard.devices.kinds import ON_CPU as _CPU


class _Settings(Protocol):
    """Attributes of torch's settings module that its stubs leave out."""

    fill_uninitialized_memory: bool


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of all generators that work on a device draws from, by the kind of device."""
    # Whatever the device, batches are drawn on the CPU.
    states = {_CPU: torch.get_rng_state()}
    if device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    elif device.type != _CPU:
        states[device.type] = torch.get_device_module(device).get_rng_state(device)
    return states


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Go on drawing from states; a device that they do not tell of goes on from its own."""
    torch.set_rng_state(states[_CPU])
    if device.type == _CPU or device.type not in states:
        return
    state = states[device.type]
    if device.type == "mps":
        torch.mps.set_rng_state(state)
    else:
        torch.get_device_module(device).set_rng_state(state, device)


@contextmanager
def preserved_randomness(device: torch.device) -> Iterator[None]:
    """A context that uses up no random number.

    Example:
        >>> before = torch.get_rng_state()
        >>> with preserved_randomness(torch.device("cpu")):
        ...     drawn = torch.rand(3)
        >>> torch.equal(torch.get_rng_state(), before)
        True
    """
    states = random_states(device)
    try:
        yield
    finally:
        set_random_states(states, device)


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """A context in which a device gives the same bits whenever it computes the same."""
    # A CPU does so anyway. Torch warns of a GPU's operations that cannot, by name.
    if device.type == _CPU:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    settings = cast(_Settings, deterministic)
    filled = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Empty tensors are filled by us; filling them before as well only takes time.
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
        settings.fill_uninitialized_memory = filled
