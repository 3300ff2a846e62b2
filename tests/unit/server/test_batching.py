"""The line before the worker: who shares a batch, who waits, and who is told to come again."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from regard.errors import SettingError
from regard.server.batching import (
    AbandonedError,
    Batcher,
    QueueClosedError,
    QueueFullError,
)

BAD = -1


class Gate:
    """Work that doubles numbers, once it is let through; keeps what its batches were."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.begun = threading.Event()
        self.opened = threading.Event()
        if is_open:
            self.opened.set()

    def __call__(self, key: str, items: Sequence[int], is_wanted: Callable[[], bool]) -> list[int]:
        self.batches.append((key, list(items)))
        self.begun.set()
        assert self.opened.wait(10)
        if BAD in items:
            raise ValueError("bad")
        return [2 * item for item in items]

    @property
    def sizes(self) -> list[int]:
        return [len(items) for _, items in self.batches]


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 30))


async def let_begin(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.begun.wait, 10)


def test_every_item_has_its_own_result_in_order():
    async def scene() -> None:
        batcher = Batcher(Gate())
        assert await batcher.submit("", [3, 1, 2]) == [6, 2, 4]
        assert await batcher.submit("", []) == []
        await batcher.close()

    run(scene())


def test_who_comes_while_others_are_worked_on_shares_the_next_batch():
    async def scene() -> None:
        gate = Gate(is_open=False)
        sizes: list[int] = []
        batcher = Batcher(gate, on_batch=sizes.append)
        first = batcher.submit("", [0])
        await let_begin(gate)
        others = [batcher.submit("", [number]) for number in range(1, 8)]
        assert batcher.waiting == 7
        gate.opened.set()
        assert await asyncio.gather(first, *others) == [[2 * number] for number in range(8)]
        assert gate.sizes == sizes == [1, 7]
        assert batcher.waiting == 0
        await batcher.close()

    run(scene())


def test_a_lone_client_never_waits_for_company():
    async def scene() -> None:
        batcher = Batcher(Gate(), max_wait=60.0)
        for number in range(20):
            assert await batcher.submit("", [number]) == [2 * number]
        await batcher.close()

    run(scene())


def test_clients_that_ask_again_and_again_come_to_share_one_batch():
    async def scene() -> None:
        gate = Gate()
        batcher = Batcher(gate, max_wait=0.5)

        async def client(number: int) -> None:
            for _ in range(10):
                await batcher.submit("", [number])
                await asyncio.sleep(0.01 * (number % 2))  # on its way

        await asyncio.gather(*map(client, range(6)))
        # The first batch is of one, since nobody else was there; without a hold they stay halves.
        assert gate.sizes[2:8] == [6] * 6
        await batcher.close()

    run(scene())


def test_a_batch_is_held_no_longer_than_allowed():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, max_wait=0.05)
        first = [batcher.submit("", [number]) for number in range(4)]
        gate.opened.set()
        await asyncio.gather(*first)
        assert await batcher.submit("", [5]) == [10]  # the other three never come
        await batcher.close()

    run(scene())


def test_other_options_are_another_batch_and_take_turns():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, max_batch=2)
        asked = [batcher.submit("a", [0])]
        await let_begin(gate)
        asked += [batcher.submit(key, [number]) for number, key in enumerate("aaaabb")]
        gate.opened.set()
        await asyncio.gather(*asked)
        assert [key for key, _ in gate.batches] == ["a", "b", "a", "a"]
        await batcher.close()

    run(scene())


def test_a_single_text_does_not_wait_for_all_of_a_long_list():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, max_batch=8)
        long = batcher.submit("", list(range(100, 180)))
        await let_begin(gate)
        short = [batcher.submit("", [number]) for number in range(3)]
        gate.opened.set()
        await asyncio.gather(*short)
        assert not long.done()
        assert await long == [2 * number for number in range(100, 180)]
        # The list has at least half of each batch, and all that nobody else wants.
        assert gate.sizes == [8] * 10 + [3]
        assert sorted(gate.batches[1][1])[:3] == [0, 1, 2]
        await batcher.close()

    run(scene())


def test_heavy_items_fill_a_batch_sooner_and_the_heaviest_go_alone():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, weigh=lambda key, item: item, max_batch=10)
        asked = [batcher.submit("", [1])]
        await let_begin(gate)
        asked += [batcher.submit("", [weight]) for weight in (6, 4, 5, 99, 2)]
        assert batcher.waiting == 116
        gate.opened.set()
        await asyncio.gather(*asked)
        assert [items for _, items in gate.batches] == [[1], [6, 4], [5], [99], [2]]
        await batcher.close()

    run(scene())


def test_a_full_line_refuses_and_says_when_to_come_again():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, capacity=5)
        first = batcher.submit("", [0])
        await let_begin(gate)
        second = batcher.submit("", list(range(5)))
        with pytest.raises(QueueFullError) as refused:
            batcher.submit("", [0])
        assert refused.value.retry_after >= 1
        gate.opened.set()
        await asyncio.gather(first, second)
        # More than the line holds is taken where nobody waits.
        assert len(await batcher.submit("", list(range(12)))) == 12
        await batcher.close()

    run(scene())


def test_whoever_goes_away_in_time_is_not_worked_on_and_leaves_room():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, capacity=2)
        first = batcher.submit("", [0])
        await let_begin(gate)
        gone, stays = batcher.submit("", [1]), batcher.submit("", [2])
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        late = batcher.submit("", [3])
        gate.opened.set()
        assert await asyncio.gather(first, stays, late) == [[0], [4], [6]]
        assert gate.batches[1:] == [("", [2, 3])]
        await batcher.close()

    run(scene())


def test_work_is_told_when_nobody_waits_for_it_any_more():
    async def scene() -> None:
        begun, told = threading.Event(), threading.Event()

        def work(key: str, items: Sequence[int], is_wanted: Callable[[], bool]) -> list[int]:
            begun.set()
            while key == "endless" and is_wanted():
                time.sleep(0.001)
            if key == "endless":
                told.set()
                raise AbandonedError
            return list(items)

        batcher: Batcher[str, int, int] = Batcher(work)
        gone = [batcher.submit("endless", [0]), batcher.submit("endless", [1])]
        assert await asyncio.to_thread(begun.wait, 10)
        gone[0].cancel()
        await asyncio.sleep(0.02)
        assert not told.is_set()  # one still waits
        gone[1].cancel()
        assert await batcher.submit("", [7]) == [7]
        assert told.is_set()
        await batcher.close()

    run(scene())


def test_what_fails_fails_alone():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate)
        first = batcher.submit("", [0])
        await let_begin(gate)
        asked = [batcher.submit("", [number]) for number in (12, BAD, 14)]
        gate.opened.set()
        found = await asyncio.gather(first, *asked, return_exceptions=True)
        assert found[0] == [0]
        assert found[1] == [24]
        assert found[3] == [28]
        assert isinstance(found[2], ValueError)
        assert await batcher.submit("", [5]) == [10]
        await batcher.close()

    run(scene())


def test_work_that_loses_a_result_is_a_bug_and_no_shift_of_answers():
    async def scene() -> None:
        batcher: Batcher[str, int, int] = Batcher(lambda key, items, is_wanted: items[1:])
        with pytest.raises(RuntimeError, match="1 results for 2 items"):
            await batcher.submit("", [1, 2])
        await batcher.close()

    run(scene())


def test_closing_finishes_what_was_taken_and_takes_nobody_else():
    async def scene() -> None:
        gate = Gate(is_open=False)
        batcher = Batcher(gate, max_batch=2)
        asked = [batcher.submit("", [number]) for number in range(7)]
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.01)
        with pytest.raises(QueueClosedError):
            batcher.submit("", [8])
        assert not closing.done()
        gate.opened.set()
        await closing
        assert [each.result() for each in asked] == [[2 * number] for number in range(7)]

    run(scene())


def test_time_to_come_again_is_what_waits_over_the_speed():
    async def scene() -> None:
        gate = Gate()
        batcher = Batcher(gate, capacity=10_000)
        assert batcher.retry_after() == 1

        def slow(key: str, items: Sequence[int], is_wanted: Callable[[], bool]) -> list[int]:
            time.sleep(0.1)
            return list(items)

        batcher = Batcher(slow, max_batch=1, capacity=10_000)
        await batcher.submit("", [0])
        waiting = batcher.submit("", list(range(100)))
        assert 8 <= batcher.retry_after() <= 15  # 100 of them at 10 a second
        waiting.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 0
        await batcher.close()

    run(scene())


@pytest.mark.parametrize("name", ["max_batch", "capacity"])
def test_a_line_without_room_is_refused(name: str):
    with pytest.raises(SettingError, match=f"{name} must be at least 1; got 0"):
        Batcher(Gate(), **{name: 0})


def test_a_long_request_fills_batches_no_longer_than_its_turn_and_others_come_between():
    async def scene() -> None:
        batches: list[list[int]] = []

        def work(key: str, items: Sequence[int], is_wanted: Callable[[], bool]) -> list[int]:
            batches.append(list(items))
            time.sleep(0.02 * len(items))
            return list(items)

        batcher = Batcher(work, max_batch=64, max_wait=0.0, turn=0.1)
        long = batcher.submit("", range(60))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        assert await batcher.submit("", [-1]) == [-1]
        assert time.monotonic() - began < 0.6
        assert await long == list(range(60))
        assert len(batches[0]) == 8  # how long an item takes is not known yet
        assert max(map(len, batches[1:])) <= 6
        assert -1 in batches[1]
        await batcher.close()

    run(scene())


def test_a_turn_grows_with_the_speed_to_whole_batches():
    async def scene() -> None:
        gate = Gate()
        batcher = Batcher(gate, max_batch=64, turn=0.5)
        await batcher.submit("", range(200))
        assert gate.sizes == [8, 64, 64, 64]
        await batcher.close()

    run(scene())
