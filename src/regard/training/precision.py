"""Which number format matrix products run in, and keeping freed memory for the next batch."""

import ctypes
import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from regard.choices import check_choice
from regard.layers.precision import multiplies_bfloat16, warn_of_slow_bfloat16
from regard.training.settings import Precision


def compute_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The dtype of matrix products: what ``precision`` says, or what the processor is fast in.

    ``auto`` is bfloat16 on GPUs and CPUs that multiply it natively (AVX-512 BF16 or AMX), where it
    is two to four times as fast as float32; weights, sums, softmax and norms stay float32.

    Raises:
        SettingError: There is no such precision.
    """
    check_choice("precision", precision, Precision)
    if precision == "auto":
        return torch.bfloat16 if multiplies_bfloat16(device) else torch.float32
    if precision == "float32":
        return torch.float32
    warn_of_slow_bfloat16(device)
    return torch.bfloat16


def mixed_precision(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[object]:
    """A context in which matrix products run in ``dtype``."""
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def keep_freed_memory() -> None:
    """Ask the C library to reuse freed memory instead of giving it back to the system.

    Batches differ in size, and large buffers that are returned and asked for again cost a page
    fault every 4 KiB: a tenth to a third of a small model's step. Only glibc has the setting;
    elsewhere nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        # From malloc.h: M_MMAP_THRESHOLD is -3, M_TRIM_THRESHOLD is -1.
        library.mallopt(-3, 1 << 30)
        library.mallopt(-1, (1 << 31) - 1)
