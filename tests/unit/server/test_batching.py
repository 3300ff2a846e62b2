"""The line before the worker: who shares a batch, who waits, and who is refused."""

import asyncio
import threading
import time
from functools import wraps

import pytest

from regard.server.batching import AbandonedError, Batcher, QueueClosedError, QueueFullError

BAD = -1


class Gate:
    """Work that doubles numbers, once it is let through; keeps what its batches were."""

    def __init__(self, *, is_open=True):
        self.batches = []
        self.begun = threading.Event()
        self.opened = threading.Event()
        if is_open:
            self.opened.set()

    def __call__(self, key, items, is_wanted):
        self.batches.append((key, list(items)))
        self.begun.set()
        assert self.opened.wait(10)
        if BAD in items:
            raise ValueError("bad")
        return [2 * item for item in items]

    @property
    def sizes(self):
        return [len(items) for _, items in self.batches]


MADE = []


def batcher_of(work, **options):
    """A batcher that ``in_loop`` closes at the end of the test."""
    MADE.append(Batcher(work, **options))
    return MADE[-1]


def in_loop(test):
    """Run an asynchronous test in an event loop of its own."""

    async def run(**fixtures):
        MADE.clear()
        await test(**fixtures)
        for batcher in MADE:
            await batcher.close()

    @wraps(test)
    def wrapped(**fixtures):
        asyncio.run(asyncio.wait_for(run(**fixtures), 30))

    return wrapped


async def busy(gate, items=(0,), **options):
    """A batcher whose worker is busy with a first item, and the answer to that."""
    batcher = batcher_of(gate, **options)
    first = batcher.submit("", items)
    assert await asyncio.to_thread(gate.begun.wait, 10)
    return batcher, first


@in_loop
async def test_who_comes_while_others_are_worked_on_shares_the_next_batch():
    gate = Gate(is_open=False)
    sizes = []
    batcher, first = await busy(gate, on_batch=sizes.append)
    others = [batcher.submit("", [number]) for number in range(1, 8)]
    assert batcher.waiting == 7
    gate.opened.set()
    assert await asyncio.gather(first, *others) == [[2 * number] for number in range(8)]
    assert gate.sizes == sizes == [1, 7]
    assert batcher.waiting == 0


@in_loop
async def test_other_options_are_another_batch_and_take_turns():
    gate = Gate(is_open=False)
    batcher = batcher_of(gate, max_batch=2)
    requests = [batcher.submit("a", [0])]
    assert await asyncio.to_thread(gate.begun.wait, 10)
    requests += [batcher.submit(key, [number]) for number, key in enumerate("aaaabb")]
    gate.opened.set()
    await asyncio.gather(*requests)
    assert [key for key, _ in gate.batches] == ["a", "b", "a", "a"]


@in_loop
async def test_a_single_text_does_not_wait_for_all_of_a_long_list():
    gate = Gate(is_open=False)
    batcher, long = await busy(gate, range(100, 180), max_batch=8)
    short = [batcher.submit("", [number]) for number in range(3)]
    gate.opened.set()
    await asyncio.gather(*short)
    assert not long.done()
    assert await long == [2 * number for number in range(100, 180)]
    # The list has at least half of each batch, and all that nobody else wants.
    assert gate.sizes == [8] * 10 + [3]
    assert sorted(gate.batches[1][1])[:3] == [0, 1, 2]


@in_loop
async def test_heavy_items_fill_a_batch_sooner_and_the_heaviest_go_alone():
    gate = Gate(is_open=False)
    batcher, first = await busy(gate, [1], weigh=lambda key, item: item, max_batch=10)
    requests = [first, *(batcher.submit("", [weight]) for weight in (6, 4, 5, 99, 2))]
    assert batcher.waiting == 116
    gate.opened.set()
    await asyncio.gather(*requests)
    assert [items for _, items in gate.batches] == [[1], [6, 4], [5], [99], [2]]


@in_loop
async def test_a_full_line_refuses_and_says_when_to_come_again():
    gate = Gate(is_open=False)
    batcher, first = await busy(gate, capacity=5)
    second = batcher.submit("", list(range(5)))
    with pytest.raises(QueueFullError) as refused:
        batcher.submit("", [0])
    assert refused.value.retry_after >= 1
    gate.opened.set()
    await asyncio.gather(first, second)
    # More than the line holds is taken where nobody waits.
    assert len(await batcher.submit("", list(range(12)))) == 12


@in_loop
async def test_a_cancelled_request_is_not_worked_on_and_leaves_room():
    gate = Gate(is_open=False)
    batcher, first = await busy(gate, capacity=2)
    cancelled, waiting = batcher.submit("", [1]), batcher.submit("", [2])
    cancelled.cancel()
    await asyncio.sleep(0)
    assert batcher.waiting == 1
    late = batcher.submit("", [3])
    gate.opened.set()
    assert await asyncio.gather(first, waiting, late) == [[0], [4], [6]]
    assert gate.batches[1:] == [("", [2, 3])]


@in_loop
async def test_work_is_abandoned_when_nobody_waits_for_it_any_more():
    begun, abandoned = threading.Event(), threading.Event()

    def work(key, items, is_wanted):
        begun.set()
        while key == "endless" and is_wanted():
            time.sleep(0.001)
        if key == "endless":
            abandoned.set()
            raise AbandonedError
        return list(items)

    batcher = batcher_of(work)
    requests = [batcher.submit("endless", [0]), batcher.submit("endless", [1])]
    assert await asyncio.to_thread(begun.wait, 10)
    requests[0].cancel()
    await asyncio.sleep(0.02)
    assert not abandoned.is_set()  # one still waits
    requests[1].cancel()
    assert await batcher.submit("", [7]) == [7]
    assert abandoned.is_set()


@in_loop
async def test_what_fails_fails_alone():
    gate = Gate(is_open=False)
    batcher, first = await busy(gate)
    requests = [batcher.submit("", [number]) for number in (12, BAD, 14)]
    gate.opened.set()
    results = await asyncio.gather(first, *requests, return_exceptions=True)
    assert results[0] == [0]
    assert results[1] == [24]
    assert results[3] == [28]
    assert isinstance(results[2], ValueError)
    assert await batcher.submit("", [5]) == [10]


@in_loop
async def test_work_that_loses_a_result_is_a_bug_and_no_shift_of_answers():
    batcher = batcher_of(lambda key, items, is_wanted: items[1:])
    with pytest.raises(RuntimeError, match="1 results for 2 items"):
        await batcher.submit("", [1, 2])


@in_loop
async def test_closing_finishes_what_was_taken_and_takes_nobody_else():
    gate = Gate(is_open=False)
    batcher = batcher_of(gate, max_batch=2)
    requests = [batcher.submit("", [number]) for number in range(7)]
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0.01)
    with pytest.raises(QueueClosedError):
        batcher.submit("", [8])
    assert not closing.done()
    gate.opened.set()
    await closing
    assert [each.result() for each in requests] == [[2 * number] for number in range(7)]


@in_loop
async def test_time_to_come_again_is_what_waits_over_the_speed():
    gate = Gate()
    batcher = batcher_of(gate, capacity=10_000)
    assert batcher.retry_after() == 1

    def slow(key, items, is_wanted):
        time.sleep(0.1)
        return list(items)

    batcher = batcher_of(slow, max_batch=1, capacity=10_000)
    await batcher.submit("", [0])
    waiting = batcher.submit("", list(range(100)))
    assert 8 <= batcher.retry_after() <= 15  # 100 of them at 10 a second
    waiting.cancel()
    await asyncio.sleep(0)
    assert batcher.waiting == 0


@in_loop
async def test_a_long_request_fills_batches_no_longer_than_its_turn_and_others_come_between():
    batches = []

    def work(key, items, is_wanted):
        batches.append(list(items))
        time.sleep(0.02 * len(items))
        return list(items)

    batcher = batcher_of(work, max_batch=64, turn=0.1)
    long = batcher.submit("", range(60))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    assert await batcher.submit("", [-1]) == [-1]
    assert time.monotonic() - began < 0.6
    assert await long == list(range(60))
    assert len(batches[0]) == 8  # how long an item takes is not known yet
    assert max(map(len, batches[1:])) <= 6
    assert -1 in batches[1]


@in_loop
async def test_a_turn_grows_with_the_speed_to_whole_batches():
    gate = Gate()
    batcher = batcher_of(gate, max_batch=64, turn=0.5)
    await batcher.submit("", range(200))
    assert gate.sizes == [8, 64, 64, 64]
