"""Threads that share out the tasks of a compiled pass.

As many as ``torch.get_num_threads()`` says, the caller among them: torch's own, or where that
cannot be, others. What tasks ask of torch is done by the thread that asks. What a task computes
must not depend on who does it, so that the answer is the same whatever their number.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from threading import Lock

import torch

from regard.kernels import libraries

# Rows that one compiled loop takes, and the fewest for which a thread more is worth its start.
_MOST_ROWS, _FEWEST_ROWS = 64, 8
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


def parallel_for(tasks: int, work: Callable[[int], None]) -> None:
    """Call ``work(task)`` for every task from 0 on, on all threads that torch may use.

    Args:
        tasks: How many there are.
        work: Does one; it must let go of the interpreter's lock for others to go on beside it.

    Raises:
        Exception: The first one that ``work`` raised; the tasks that nobody has begun are left out.
    """
    threads = min(tasks, torch.get_num_threads())
    if threads <= 1:
        with libraries.alone():
            for task in range(tasks):
                work(task)
        return
    numbers = count()  # next() of it is one step of the interpreter: no two threads get the same
    errors: list[BaseException] = []

    def take() -> None:
        try:
            with libraries.alone():
                while not errors and (task := next(numbers)) < tasks:
                    work(task)
        except BaseException as error:
            errors.append(error)

    if _pools.is_forked or not libraries.in_team(threads, take):
        others = [_pools.of(threads - 1).submit(take) for _ in range(threads - 1)]
        take()
        wait(others)
    if errors:
        raise errors[0]


def parallel_rows(rows: int, operations: int, work: Callable[[int, int], None]) -> None:
    """Share rows out among threads, if there is enough to do; ``operations`` of each row."""
    threads = min(rows, torch.get_num_threads())
    if threads == 1 or rows * operations < _FEWEST_OPERATIONS:
        work(0, rows)
        return
    each = -(-rows // threads)
    parallel_for(threads, lambda task: work(min(rows, task * each), min(rows, (task + 1) * each)))


def parallel_blocks(rows: int, work: Callable[[int, int], None]) -> None:
    """Share rows out in even blocks, each of which goes through all weights by itself."""
    each = max(_FEWEST_ROWS, min(_MOST_ROWS, -(-rows // torch.get_num_threads())))
    blocks = min(-(-rows // each), rows // _FEWEST_ROWS)
    if blocks <= 1:
        work(0, rows)
        return
    parallel_for(blocks, lambda task: work(task * rows // blocks, (task + 1) * rows // blocks))
