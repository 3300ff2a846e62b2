"""Requests that come one by one, worked on together.

One thread works; whoever asks meanwhile waits in line, and all who wait and ask alike are the next
batch. So batches grow with the load by themselves, and a lone request waits for nobody.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")

# Work on a batch: the kind of its requests, their items, and whether anybody still waits, to be
# called from time to time. One result for each item, the same whatever else is in the batch.
Work = Callable[[K, Sequence[T], Callable[[], bool]], Sequence[R]]

# How much of the speed is that of the last batch.
_RECENT = 0.2
# Weight of a request's first part, before it is known how long its parts take.
_FIRST_TURN = 8.0


class QueueFullError(Exception):
    """No room in the line; ``retry_after`` is when there may be, in whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"no room for {retry_after} s")
        self.retry_after = retry_after


class QueueClosedError(Exception):
    """The line takes nobody any more."""


class AbandonedError(Exception):
    """Raised by work that nobody waits for any more."""


@dataclass(eq=False)
class _Job(Generic[K, T, R]):
    key: K
    items: Sequence[T]
    weights: Sequence[int]
    future: "asyncio.Future[list[R]]"
    turn: float  # most weight of it that a batch takes
    begun: int = 0  # items the worker has been given
    results: list[R] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(self.weights[self.begun :])


class Batcher(Generic[K, T, R]):
    """A bounded line before one working thread, used from one event loop."""

    def __init__(
        self,
        work: Work[K, T, R],
        *,
        weigh: Callable[[K, T], int] | None = None,
        max_batch: int = 64,  # most weight at once; a heavier item goes alone
        capacity: int = 2000,  # most weight in line; a heavier request is taken if nobody waits
        turn: float = math.inf,  # seconds for which parts of one request may fill a batch
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self.waiting = 0
        self._work = work
        self._weigh = weigh or (lambda key, item: 1)
        self._max_batch = max_batch
        self._capacity = capacity
        self._turn = turn
        self._on_batch = on_batch
        self._jobs: dict[_Job[K, T, R], None] = {}
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="regard-worker")
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._last_key: K | None = None
        self._speed = 0.0  # weight a second

    def submit(self, key: K, items: Sequence[T]) -> "asyncio.Future[list[R]]":
        """One result for each item, in order; requests of the same key may share a batch."""
        if self._is_closed:
            raise QueueClosedError
        weights = [self._weigh(key, item) for item in items]
        self.check_room(sum(weights))
        first = _FIRST_TURN if math.isfinite(self._turn) else math.inf
        job = _Job(key, items, weights, asyncio.get_running_loop().create_future(), first)
        if not items:
            job.future.set_result([])
            return job.future
        self._jobs[job] = None
        self.waiting += job.waiting
        job.future.add_done_callback(lambda _: self._forget(job))
        self._arrived.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return job.future

    def check_room(self, weight: int) -> None:
        """Raise QueueFullError if so much may not stand in line now."""
        if self.waiting and self.waiting + weight > self._capacity:
            raise QueueFullError(self.retry_after())

    def retry_after(self) -> int:
        """Seconds until the requests in line are answered, as a whole number from 1."""
        return max(1, math.ceil(self.waiting / self._speed)) if self._speed else 1

    async def close(self) -> None:
        """Take nobody any more, finish the accepted requests, and end the thread."""
        self._is_closed = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown(wait=False)

    def _forget(self, job: _Job[K, T, R]) -> None:
        """Take a request out of the line: it is answered, or its client has gone."""
        if job in self._jobs:
            del self._jobs[job]
            self.waiting -= job.waiting

    async def _run(self) -> None:
        while True:
            while not self.waiting:
                if self._is_closed:
                    return
                self._arrived.clear()
                await self._arrived.wait()
            if batch := self._take():
                await self._work_on(batch)
            await asyncio.sleep(0)  # others have their turn, whatever was taken

    def _take(self) -> dict[_Job[K, T, R], list[T]]:
        """The next batch: items of each request. Keys take turns."""
        for job in [job for job in self._jobs if job.future.done()]:
            self._forget(job)  # who has just gone, and has not been called for yet
        jobs = [job for job in self._jobs if job.begun < len(job.items)]
        jobs.sort(key=lambda job: job.key == self._last_key)  # stable: the oldest of another first
        alike = [job for job in jobs if job.key == jobs[0].key]
        batch: dict[_Job[K, T, R], list[T]] = {}
        room = self._max_batch
        for job in _in_turn(alike, self._max_batch / 2):
            weight = job.weights[job.begun]
            if batch and weight > room:
                break
            batch.setdefault(job, []).append(job.items[job.begun])
            job.begun += 1
            self.waiting -= weight
            room -= weight
        self._last_key = alike[0].key if alike else None
        return batch

    async def _work_on(self, batch: dict[_Job[K, T, R], list[T]]) -> None:
        """Answer the requests of a batch; one that fails, fails alone."""
        items = [item for part in batch.values() for item in part]
        self._on_batch(len(items))
        key = next(iter(batch)).key
        began = time.monotonic()
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._thread,
                self._work,
                key,
                items,
                lambda: any(not job.future.done() for job in batch),
            )
            if len(results) != len(items):
                raise RuntimeError(f"work gave {len(results)} results for {len(items)} items")
        except Exception as error:  # whoever asked is told; the line goes on
            if len(batch) > 1:
                for job, part in batch.items():
                    if not job.future.done():
                        await self._work_on({job: part})
                return
            for job in batch:
                if not job.future.done():
                    job.future.set_exception(error)
            return
        weight = sum(self._weigh(key, item) for item in items)
        self._note_speed(batch, weight / max(time.monotonic() - began, 1e-6))
        self._hand_out(batch, results)

    def _hand_out(self, batch: dict[_Job[K, T, R], list[T]], results: Sequence[R]) -> None:
        """Give each request its results, and whoever has all of them the answer."""
        remaining = iter(results)
        for job, part in batch.items():
            job.results.extend(islice(remaining, len(part)))
            if len(job.results) == len(job.items) and not job.future.done():
                job.future.set_result(job.results)
                self._forget(job)  # at once: its own call comes a moment later

    def _note_speed(self, batch: Iterable[_Job[K, T, R]], speed: float) -> None:
        """Of the last batch, by weight: how much of its requests the next ones may take."""
        for job in batch:
            job.turn = self._turn * speed
        self._speed += (_RECENT if self._speed else 1.0) * (speed - self._speed)


def _in_turn(jobs: Sequence[_Job[K, T, R]], half: float) -> Iterator[_Job[K, T, R]]:
    """Choose the next items: the oldest request's up to ``half``, then round robin."""
    if not jobs:
        return
    oldest, *later = jobs
    taken = dict.fromkeys(jobs, 0)

    def goes_on(job: _Job[K, T, R]) -> bool:
        return job.begun < len(job.items) and taken[job] < job.turn

    while goes_on(oldest) and taken[oldest] < half:
        taken[oldest] += oldest.weights[oldest.begun]
        yield oldest
    turns = deque([*later, oldest])
    while turns:
        job = turns.popleft()
        if goes_on(job):
            taken[job] += job.weights[job.begun]
            yield job
            turns.append(job)
