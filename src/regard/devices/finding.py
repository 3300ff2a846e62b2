"""Resolves device names, also where several processes train; kinds of devices and fast types."""

import os
import warnings
from functools import cache
from itertools import chain

import torch
from torch import nn

from regard.devices.kinds import AUTO, KINDS, ON_CPU, check_device_name
from regard.errors import SettingError

CPU = torch.device(ON_CPU)
_GIB = 2**30
_ON_GPU = "cuda"


def find_device(name: str = AUTO, *, setting: str = "device") -> torch.device:
    """The device of that name, which is there and can be used.

    Args:
        name: ``auto`` for the fastest that is there, ``cpu``, ``cuda`` for the GPU in use,
            ``cuda:1`` for the second, or ``mps`` for that of a Mac.
        setting: Its name in messages, such as ``training.device``.

    Raises:
        SettingError: There is no such kind of device; or it, its driver, or torch's own part for
            it is missing here.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    check_device_name(setting, name)
    if name == AUTO:
        name = next(kind for kind in KINDS if _why_not(kind) is None)
    kind, _, number = name.partition(":")
    if (reason := _why_not(kind)) is not None:
        raise SettingError(
            f"{setting} must be a device that can be used here; got {name!r}, but {reason} "
            "Or say auto, which takes what there is."
        )
    if kind != "cuda":
        return torch.device(kind)
    count = torch.cuda.device_count()
    if number and int(number) >= count:
        there = "cuda:0 is the only one" if count == 1 else f"they end at cuda:{count - 1}"
        raise SettingError(
            f"{setting} must be one of the GPUs of this machine; got {name!r}, but {there}. "
            "nvidia-smi lists them; CUDA_VISIBLE_DEVICES may hide some."
        )
    # cuBLAS needs this before its first call, to give the same bits each time.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return torch.device("cuda", int(number) if number else torch.cuda.current_device())


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights are, and its inputs have to be.

    Example:
        >>> device_of(nn.Linear(2, 3)), device_of(nn.Identity())
        (device(type='cpu'), device(type='cpu'))
    """
    first = next(chain(model.parameters(), model.buffers()), None)
    return CPU if first is None else first.device


def describe_device(device: torch.device) -> str:
    """A device in words for people.

    Example:
        >>> describe_device(CPU).startswith("cpu, ")
        True
    """
    if device.type == "cuda":
        about = torch.cuda.get_device_properties(device)
        return f"{device}, {about.name} with {about.total_memory / _GIB:.0f} GiB"
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return f"cpu, {threads} thread{'s' * (threads > 1)}"
    return str(device)


def _why_not(kind: str) -> str | None:
    """Why a kind of device cannot be used here, as a sentence; None if it can."""
    if kind == "cuda":
        if torch.cuda.is_available():
            return None
        if torch.version.cuda is None and torch.version.hip is None:
            return (
                f"torch {torch.__version__} is built without CUDA. Install one that is built with "
                "it: https://pytorch.org/get-started."
            )
        return (
            "torch finds no driver, or no GPU. nvidia-smi says whether there are both; "
            "CUDA_VISIBLE_DEVICES may hide a GPU."
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        return "that is the GPU of a Mac with Apple silicon, under macOS 14 or newer."
    return None


def find_process_device(
    name: str = AUTO, *, number: int, count: int, setting: str = "device"
) -> torch.device:
    """The device of one of several processes, each of which has a GPU of its own, or the CPU."""
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
    """Make a device this process's own; gives the backend that sends its tensors to others."""
    # None is gloo, which sends tensors on a CPU.
    if device.type != _ON_GPU:
        return None
    torch.cuda.set_device(device)
    return "nccl"


class SlowWarning(UserWarning):
    """Warning that the requested precision works, and another is far faster at the same quality."""


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster there than of float32: GPUs, AVX-512 BF16, AMX."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and _does_cpu()


@cache
def multiplies_in_tiles() -> bool:
    """Whether the CPU multiplies bfloat16 in tiles (AMX), as torch's fused kernel then does."""
    return _has_tiles() and torch.backends.cpu.get_cpu_capability() == "AVX512"


@cache
def fails_in_tiles() -> bool:
    """Whether torch's fused kernel fails in half precision: with tiles, but without AVX-512."""
    # ATEN_CPU_CAPABILITY=avx2 leaves no function that packs for tiles, and the kernel asks for it.
    return _has_tiles() and not multiplies_in_tiles()


def _has_tiles() -> bool:
    # Private in torch 2.13, and the only way to ask.
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())


def warn_of_slow_bfloat16(device: torch.device) -> None:
    """Say once that matrix products of bfloat16 are slow there, if they are."""
    if device.type == "cpu" and not torch.compiler.is_compiling() and not _does_cpu():
        _warn()


def _does_cpu() -> bool:
    # Private in torch 2.13, and the only way to ask; where absent, float32 is always right.
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in names)


@cache
def _warn() -> None:
    warnings.warn(
        "bfloat16 must be multiplied by the processor to be fast; got one without AVX-512 BF16 and "
        "AMX, where products take six to eight times as long as in float32. Leave the model in "
        'float32, or say precision = "auto".',
        SlowWarning,
        stacklevel=4,
    )
