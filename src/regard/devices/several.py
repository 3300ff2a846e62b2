"""Devices of several processes that work together: who has which, and what they talk by."""

import torch

from regard.devices.finding import find_device
from regard.devices.kinds import AUTO, ON_CPU
from regard.errors import SettingError

_ON_GPU = "cuda"


def find_own_device(
    name: str = AUTO, *, number: int, count: int, setting: str = "device"
) -> torch.device:
    """The device of one of several processes, each of which has a GPU of its own, or the CPU.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        number: Which of the processes of this machine it is, from 0.
        count: How many they are.
        setting: What is called so in messages.

    Raises:
        SettingError: There is no such device, none for several processes, or fewer GPUs than
            processes.

    Example:
        >>> find_own_device("cpu", number=1, count=2)
        device(type='cpu')
        >>> find_own_device("cuda:1", number=0, count=2)
        Traceback (most recent call last):
        regard.errors.SettingError: device must be auto, cpu or cuda where several processes train; got 'cuda:1'.
    """  # noqa: E501
    if name == AUTO:
        name = _ON_GPU if torch.cuda.is_available() else ON_CPU
    if name not in (_ON_GPU, ON_CPU):
        raise SettingError(
            f"{setting} must be auto, cpu or cuda where several processes train; got {name!r}."
        )
    device = find_device(name, setting=setting)
    if device.type == ON_CPU:
        return device
    if (there := torch.cuda.device_count()) < count:
        raise SettingError(
            f"{setting} must be one GPU for each process; got {count} processes and {there} "
            f"GPU{'s' * (there > 1)} on this machine. Take fewer processes, or {setting} = cpu."
        )
    return torch.device(_ON_GPU, number)


def claim_device(device: torch.device) -> str | None:
    """Make a device this process's own; what tensors on it are sent to other processes by.

    None is what tensors on a CPU are sent by: gloo.

    Example:
        >>> device = find_own_device("cpu", number=0, count=2)
        >>> claim_device(device) or "gloo"
        'gloo'
    """
    if device.type != _ON_GPU:
        return None
    torch.cuda.set_device(device)
    return "nccl"
