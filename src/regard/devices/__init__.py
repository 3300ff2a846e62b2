"""Devices: the room that alone knows one from another. All others take a ``torch.device``."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.devices.finding import (
        CPU,
        claim_device,
        describe_device,
        device_of,
        find_device,
        find_own_device,
        wait_for,
    )
    from regard.devices.kinds import DeviceName, check_device_name
    from regard.devices.memory import (
        build_in_memory,
        build_within,
        describing_out_of_memory,
        free_memory,
        in_halves,
        is_finite,
        is_out_of_memory,
    )
    from regard.devices.moving import Ahead, moved
    from regard.devices.randomness import (
        preserved_randomness,
        random_states,
        repeatable,
        set_random_states,
    )

__all__ = [
    "CPU",
    "Ahead",
    "DeviceName",
    "build_in_memory",
    "build_within",
    "check_device_name",
    "claim_device",
    "describe_device",
    "describing_out_of_memory",
    "device_of",
    "find_device",
    "find_own_device",
    "free_memory",
    "in_halves",
    "is_finite",
    "is_out_of_memory",
    "moved",
    "preserved_randomness",
    "random_states",
    "repeatable",
    "set_random_states",
    "wait_for",
]

__getattr__ = _names(__name__, __file__)
