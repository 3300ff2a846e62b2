"""Support of bfloat16 products by the processor, and the warning where it is missing."""

import warnings
from functools import cache

import torch


class SlowWarning(UserWarning):
    """Warning that the requested precision works, and another is far faster at the same quality."""


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster there than of float32: GPUs, AVX-512 BF16, AMX."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and _does_cpu()


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
