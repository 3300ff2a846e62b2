"""Thread scheduling and memory of compiled loops."""

import ctypes
import math
import mmap
import sys
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float32

from regard.attention.engine.workers import share_out

# Rows that one compiled loop takes, and the fewest for which a thread more is worth its start.
_MOST_ROWS, _FEWEST_ROWS = 64, 8
# Below this many operations a loop is not shared out.
_FEWEST_OPERATIONS = 2**18
# Bytes from which pages of its own are worth asking the system for.
_OF_THE_SYSTEM = 2**20


def by_rows(rows: int, operations: int, work: Callable[[int, int], None]) -> None:
    """Share rows out among threads, if there is enough to do; ``operations`` of each row."""
    threads = min(rows, torch.get_num_threads())
    if threads == 1 or rows * operations < _FEWEST_OPERATIONS:
        work(0, rows)
        return
    each = -(-rows // threads)
    share_out(threads, lambda task: work(min(rows, task * each), min(rows, (task + 1) * each)))


def in_blocks(rows: int, work: Callable[[int, int], None]) -> None:
    """Share rows out in even blocks, each of which goes through all weights by itself."""
    each = max(_FEWEST_ROWS, min(_MOST_ROWS, -(-rows // torch.get_num_threads())))
    blocks = min(-(-rows // each), rows // _FEWEST_ROWS)
    if blocks <= 1:
        work(0, rows)
        return
    share_out(blocks, lambda task: work(task * rows // blocks, (task + 1) * rows // blocks))


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
