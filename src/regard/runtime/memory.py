"""Large arrays that the system gets back as soon as they are free."""

import ctypes
import math
import mmap
import sys

import numpy as np
from jaxtyping import Float32

# Bytes from which pages of its own are worth asking the system for.
_OF_THE_SYSTEM = 2**20


def room_of(shape: tuple[int, ...]) -> Float32[np.ndarray, "..."]:
    """An array to be filled, which the system gets back as soon as nobody has it.

    glibc would keep it: what one long answer took would count as the process's until it ends.
    """
    size = 4 * math.prod(shape)
    if sys.platform != "linux" or size < _OF_THE_SYSTEM:
        return np.empty(shape, np.float32)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.float32).reshape(shape)


def hand_back() -> None:
    """Let the system have what is free: glibc keeps the room of matrices of up to 32 MiB."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
