"""Devices: the room that alone knows one from another. All others take a ``torch.device``."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.devices.finding import CPU as CPU
    from regard.devices.finding import describe_device as describe_device
    from regard.devices.finding import device_of as device_of
    from regard.devices.finding import find_device as find_device
    from regard.devices.kinds import DeviceName as DeviceName
    from regard.devices.moving import moved as moved
    from regard.devices.randomness import preserved_randomness as preserved_randomness

__getattr__ = _names(__name__, __file__)
