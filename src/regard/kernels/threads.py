"""Threads that share the tasks of a pass, and the libraries below torch that have them.

As many as ``torch.get_num_threads()`` says, the caller among them: torch's own, or where that
cannot be, Python's. The result of a task must not depend on its thread, nor on their number.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Protocol

import torch

_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Rows that one compiled loop takes, and the fewest for which a thread more is worth its start.
MOST_ROWS, FEWEST_ROWS = 64, 8
# Below this many operations a loop is not shared out.
_FEWEST_OPERATIONS = 2**18


class Team(NamedTuple):
    """Threads of a compiled pass, and addresses of functions that it calls; 0 where there is none.

    Attributes:
        threads: Their number.
        begin: GNU's ``GOMP_parallel``, which calls a function on torch's OpenMP threads.
        alone: MKL's ``MKL_Set_Num_Threads_Local``, by which products use one thread.
    """

    threads: int
    begin: int
    alone: int


class RowLoop(Protocol):
    """A compiled loop over rows ``first`` to ``stop``, which threads share out."""

    def __call__(self, first: int, stop: int, *arguments: Any) -> None:
        """Run it for some rows, on this thread."""

    def share(
        self, by: Team, tasks: int, first: int, stop: int, arguments: tuple[Any, ...]
    ) -> None:
        """Run it for so many even parts of the rows, each on any thread of a team."""


class _Process:
    """Whether this process is a fork, whose OpenMP would wait for its parent's threads."""

    is_forked = False

    @classmethod
    def forked(cls) -> None:
        cls.is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


def team(threads: int | None = None) -> Team:
    """So many threads of torch, or all."""
    threads = torch.get_num_threads() if threads is None else threads
    return Team(threads, _begin(), _address("MKL_Set_Num_Threads_Local"))


def parallel_for(tasks: int, work: Callable[[int], object]) -> None:
    """Call ``work(task)`` for every task on all torch threads; raises the first error of one.

    For work of Python, on which threads wait for the interpreter; a loop is for ``share_out``.
    """
    threads = min(tasks, torch.get_num_threads())
    numbers = count()  # next() of it is one step of the interpreter: no two threads get the same
    errors: list[BaseException] = []

    def take(_: object = None) -> None:
        try:
            with alone():
                while not errors and (task := next(numbers)) < tasks:
                    work(task)
        except BaseException as error:
            errors.append(error)

    if threads <= 1:
        take()
    elif begin := _begin():
        ctypes.CFUNCTYPE(None, _Body, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(begin)(
            _Body(take), None, threads, 0
        )
    else:
        workers = [Thread(target=take, name="attention") for _ in range(threads - 1)]
        for thread in workers:
            thread.start()
        take()
        for thread in workers:
            thread.join()
    if errors:
        raise errors[0]


def share_out(tasks: int, rows: int, loop: RowLoop, *arguments: object) -> None:
    """Call ``loop(first, stop, *arguments)`` for so many even parts of the rows, on all threads."""
    threads = team()
    if threads.threads == 1 or threads.begin or tasks <= 1:
        loop.share(threads, tasks, 0, rows, arguments)
        return
    parallel_for(
        tasks, lambda task: loop(task * rows // tasks, (task + 1) * rows // tasks, *arguments)
    )


def parallel_rows(rows: int, operations: int, loop: RowLoop, *arguments: object) -> None:
    """Split rows among threads, if there is enough to do; ``operations`` of each row."""
    is_little = rows * operations < _FEWEST_OPERATIONS
    share_out(1 if is_little else min(rows, torch.get_num_threads()), rows, loop, *arguments)


def parallel_blocks(rows: int, loop: RowLoop, *arguments: object) -> None:
    """Split rows into even blocks, each of which goes through all weights by itself."""
    threads = torch.get_num_threads()
    rounds = -(-rows // (MOST_ROWS * threads))  # in each, all threads have a block
    if rows:  # a loop may look at the first
        share_out(max(1, min(rounds * threads, rows // FEWEST_ROWS)), rows, loop, *arguments)


def address_of_products() -> int:
    """Address of MKL's ``sgemm_``, which a thread can ask to work alone; 0 without it."""
    return _address("sgemm_") if _address("MKL_Set_Num_Threads_Local") else 0


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts, torch and its BLAS use this thread alone."""
    before = torch.get_num_threads()  # in a new thread, this makes torch set its own
    set_threads = getattr(_library(), "omp_set_num_threads", lambda threads: None)
    set_products = getattr(_library(), "MKL_Set_Num_Threads_Local", lambda threads: 0)
    set_threads(1)
    of_products = set_products(1)
    try:
        yield
    finally:
        set_products(of_products)
        set_threads(before)


def _begin() -> int:
    """Address of the function that begins a team of torch's threads; 0 where there is none."""
    return 0 if _Process.is_forked else _address("GOMP_parallel")


@cache
def _address(name: str) -> int:
    """Address of a function of torch's libraries; 0 without it."""
    function = getattr(_library(), name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


@cache
def _library() -> ctypes.CDLL | None:
    """Torch's library, and all that it is linked with; None if it lies elsewhere."""
    try:
        return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    except OSError:
        return None
