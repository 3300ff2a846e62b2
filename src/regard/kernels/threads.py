"""Threads that share the tasks of a compiled pass, and the libraries below torch that have them.

As many as ``torch.get_num_threads()`` says, the caller among them: torch's own, or where that
cannot be, others. What tasks ask of torch is done by the thread that asks. What a task computes
must not depend on who does it, so that the answer is the same whatever their number.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock

import torch

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Rows that one compiled loop takes, and the fewest for which a thread more is worth its start.
MOST_ROWS, FEWEST_ROWS = 64, 8
# Below this many operations a loop is not shared out.
_FEWEST_OPERATIONS = 2**18


class _Pools:
    """A pool of threads by their number."""

    def __init__(self) -> None:
        self.is_forked = False
        self._begin()

    def forget(self) -> None:
        """Begin anew: a fork has none of its parent's threads, and torch's wait for them."""
        self.is_forked = True
        self._begin()

    def _begin(self) -> None:
        self._made: dict[int, ThreadPoolExecutor] = {}
        self._lock = Lock()

    def of(self, threads: int) -> ThreadPoolExecutor:
        """The pool of so many, made when it is first asked for."""
        with self._lock:
            if threads not in self._made:
                self._made[threads] = ThreadPoolExecutor(threads, "attention")
            return self._made[threads]


_pools = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.forget)


def parallel_for(tasks: int, work: Callable[[int], object]) -> None:
    """Call ``work(task)`` for every task on all torch threads; raises the first error of one."""
    threads = min(tasks, torch.get_num_threads())
    if threads <= 1:
        with alone():
            for task in range(tasks):
                work(task)
        return
    numbers = count()  # next() of it is one step of the interpreter: no two threads get the same
    errors: list[BaseException] = []

    def take() -> None:
        with alone():
            while not errors and (task := next(numbers)) < tasks:
                work(task)

    on_each(threads, take, errors)


def on_each(
    threads: int, do: Callable[[], None], errors: list[BaseException] | None = None
) -> None:
    """Call ``do`` on so many threads, the caller's among them; raises the first error of one."""
    errors = [] if errors is None else errors

    def guarded() -> None:
        try:
            do()
        except BaseException as error:
            errors.append(error)

    if threads == 1:
        do()
        return
    if _pools.is_forked or not in_team(threads, guarded):
        others = [_pools.of(threads - 1).submit(guarded) for _ in range(threads - 1)]
        guarded()
        wait(others)
    if errors:
        raise errors[0]


def parallel_rows(rows: int, operations: int, work: Callable[[int, int], None]) -> None:
    """Split rows among threads, if there is enough to do; ``operations`` of each row."""
    threads = min(rows, torch.get_num_threads())
    if threads == 1 or rows * operations < _FEWEST_OPERATIONS:
        work(0, rows)
        return
    each = -(-rows // threads)
    parallel_for(threads, lambda task: work(min(rows, task * each), min(rows, (task + 1) * each)))


def parallel_blocks(rows: int, work: Callable[[int, int], object]) -> None:
    """Split rows into even blocks, each of which goes through all weights by itself."""
    each = max(FEWEST_ROWS, min(MOST_ROWS, -(-rows // torch.get_num_threads())))
    blocks = min(-(-rows // each), rows // FEWEST_ROWS)
    if blocks <= 1:
        work(0, rows)
        return
    parallel_for(blocks, lambda task: work(task * rows // blocks, (task + 1) * rows // blocks))


@cache
def address_of_products() -> int | None:
    """Address of MKL's ``sgemm_``, which a thread can ask to work alone; None without it."""
    library = _library()
    if not hasattr(library, "sgemm_") or not hasattr(library, "MKL_Set_Num_Threads_Local"):
        return None
    assert library is not None
    return ctypes.cast(library.sgemm_, ctypes.c_void_p).value


def in_team(threads: int, do: Callable[[], None]) -> bool:
    """Call ``do``, which must not raise, on torch's OpenMP threads; False without GNU's OpenMP."""
    library = _library()
    if not hasattr(library, "GOMP_parallel"):
        return False
    assert library is not None
    body = _Body(lambda _: do())
    library.GOMP_parallel(body, None, ctypes.c_uint(threads), ctypes.c_uint(0))
    return True


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts, torch and its BLAS use this thread alone."""
    library = _library()
    if library is None:
        yield
        return
    before = torch.get_num_threads()  # in a new thread, this is what makes torch set its own
    of_products = 0
    if hasattr(library, "omp_set_num_threads"):
        library.omp_set_num_threads(1)
    if hasattr(library, "MKL_Set_Num_Threads_Local"):
        of_products = library.MKL_Set_Num_Threads_Local(1)
    try:
        yield
    finally:
        if hasattr(library, "MKL_Set_Num_Threads_Local"):
            library.MKL_Set_Num_Threads_Local(of_products)
        if hasattr(library, "omp_set_num_threads"):
            library.omp_set_num_threads(before)


@cache
def _library() -> ctypes.CDLL | None:
    """Torch's library, and all that it is linked with; None if it lies elsewhere."""
    try:
        return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    except OSError:
        return None
