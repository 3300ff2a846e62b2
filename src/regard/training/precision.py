"""Precision and memory on a device: number format, scale of a loss, compiling, freed memory."""

import ctypes
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from regard.checks import check_choice
from regard.devices.finding import multiplies_bfloat16, warn_of_slow_bfloat16
from regard.errors import SettingError, TrainingError
from regard.training.settings import Precision, TrainingConfig

# The loss scale to begin with, and the updates after which a larger one is tried: torch's own.
_FIRST_SCALE, _SCALED_FOR = 2.0**16, 2000
# The smallest scale, from which it grows again; 1 is that of a loss that needs none.
_LEAST_SCALE = 2.0
# Packages with the errors of torch's compiler and its backend.
_COMPILER = ("torch._dynamo", "torch._inductor")

# With fewer numbers in the states of a batch, a CPU is slower in bfloat16 than in float32: timed by
# hand on one core with AMX, models 64, 128 and 256 wide, batches of 256, 1,024 and 4,096 tokens.
_FEWEST = 2**18
# Products that oneDNN and torch's layer above it cache at most, by default 1024. An update
# asks for some thirty. See
# https://uxlfoundation.github.io/oneDNN/dev_guide_primitive_cache.html.
_PRIMITIVES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "8"}


def compute_dtype(
    config: TrainingConfig, device: torch.device, model_dim: int = 512
) -> torch.dtype:
    """The dtype of matrix products: as set, or with ``auto`` the fastest of the device."""
    # ``auto`` is bfloat16 where it is multiplied natively (on CPUs with AVX-512 BF16 or AMX up to
    # four times as fast as float32, unless products are small), and float16 on other GPUs of CUDA.
    precision = config.precision
    check_choice("precision", precision, Precision)
    if precision == "auto":
        tokens = config.batch_tokens
        is_small = device.type == "cpu" and tokens != "auto" and tokens * model_dim < _FEWEST
        if multiplies_bfloat16(device) and not is_small:
            return torch.bfloat16
        return torch.float16 if device.type == "cuda" else torch.float32
    if precision in ("float32", "tf32"):
        return torch.float32
    if precision == "float16":
        if device.type == "cpu":
            raise SettingError(
                "training.precision must be another one on a CPU; got 'float16', which it does "
                "not multiply. training.precision = auto takes what each device is fast in."
            )
        return torch.float16
    warn_of_slow_bfloat16(device)
    return torch.bfloat16


def mixed_precision(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[object]:
    """A context in which matrix products run in ``dtype``."""
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)


@contextmanager
def products_of(precision: Precision, device: torch.device) -> Iterator[None]:
    """A context in which a GPU rounds float32 operands of products to TF32, or does not."""
    # Torch rounds so in convolutions and recurrent layers unless it is told otherwise.
    if device.type != "cuda":
        yield
        return
    is_rounded, layers = precision == "tf32", torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), layers.allow_tf32
    try:
        torch.set_float32_matmul_precision("high" if is_rounded else "highest")
        layers.allow_tf32 = is_rounded
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        layers.allow_tf32 = before[1]


@dataclass(frozen=True, slots=True)
class LossScale:
    """Loss scale of float16, whose small gradients would be zero (Micikevicius, 2018, 3.2)."""

    # https://arxiv.org/abs/1710.03740. Where the scale is too large and gradients are infinite the
    # update is left out and the scale halved; after 2000 updates without that it is doubled.

    factor: float = 1.0
    since: int = 0

    @classmethod
    def of(cls, dtype: torch.dtype) -> "LossScale":
        """Return the initial scale for products in this dtype."""
        return cls(_FIRST_SCALE if dtype == torch.float16 else 1.0)

    def overflows(self, norm: float) -> bool:
        """Whether a smaller scale may mend a gradient of this norm."""
        return self.factor > _LEAST_SCALE and not math.isfinite(norm)

    def after(self, *, is_overflow: bool) -> "LossScale":
        """The scale of the next update."""
        if self.factor == 1:
            return self
        if is_overflow:
            return LossScale(max(_LEAST_SCALE, self.factor / 2))
        if self.since + 1 < _SCALED_FOR:
            return LossScale(self.factor, self.since + 1)
        return LossScale(2 * self.factor)

    def restored(self, saved: Mapping[str, int | float]) -> "LossScale":
        """The saved scale, if both this run and the saved one scale."""
        if self.factor == 1 or saved["factor"] == 1:
            return self
        return LossScale(float(saved["factor"]), int(saved["since"]))


@contextmanager
def compiled(model: nn.Module, *, cure: str) -> Iterator[None]:
    """The model as one program for batches of all sizes inside the block."""
    model.compile(dynamic=True)
    try:
        yield
    except RuntimeError as error:
        if not type(error).__module__.startswith(_COMPILER):
            raise
        message = " ".join(str(error).strip().splitlines()[:2])
        raise TrainingError(
            f"training.compile must be false where torch.compile does not work; got true, and it "
            f"says: {message} Go on without: {cure}"
        ) from error
    finally:
        model._compiled_call_impl = None


def keep_freed_memory() -> None:
    """Ask glibc to reuse freed memory instead of giving it back to the system."""
    # Batches differ in size, and large buffers that are returned and requested again cost a page
    # fault every 4 KiB: a tenth to a third of a small model's step.
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        # From malloc.h: M_MMAP_THRESHOLD is -3, M_TRIM_THRESHOLD is -1.
        library.mallopt(-3, 1 << 30)
        library.mallopt(-1, (1 << 31) - 1)


@contextmanager
def freed_memory_returned() -> Iterator[None]:
    """Give freed memory back to the system before and after a block that takes other sizes."""
    # Memory freed by training lies in pieces that a validation's buffers do not fit, and so would
    # both be held until the end.
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    trim = getattr(library, "malloc_trim", lambda pad: 0)
    trim(0)
    try:
        yield
    finally:
        trim(0)


def keep_few_primitives() -> None:
    """Ask oneDNN, which multiplies bfloat16 on a CPU, to cache few of its compiled products."""
    # It compiles one for each shape and caches a thousand, each with its own buffers: half of the
    # memory of a small model's training, for shapes that hardly come twice. The variables are read
    # at the first such product of a process; the user's own values stay.
    for name, count in _PRIMITIVES.items():
        os.environ.setdefault(name, count)
