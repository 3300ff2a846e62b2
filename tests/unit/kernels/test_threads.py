"""Tasks of parallel loops, their errors, forked processes; and a thread that works alone."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise as neighbours

import numpy as np
import pytest
import torch
from tests.cases import pairwise

from regard.kernels import threads
from regard.kernels.team import parallel, shared_out
from regard.kernels.threads import parallel_blocks, parallel_for, share_out


@pytest.fixture(params=["torch's", "others"], autouse=True)
def whose(request, monkeypatch):
    """Both kinds of threads, where torch's are GNU's."""
    if request.param == "others":
        monkeypatch.setattr(threads, "_begin", lambda: 0)


@pytest.fixture(params=[1, 2, 5])
def num_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("tasks", [0, 1, 2, 97])
def test_every_task_is_done_once_by_so_many_threads_at_most(num_threads, tasks):
    done, by = [], set()

    def work(task):
        by.add(threading.get_ident())
        time.sleep(0.001)
        done.append(task)

    parallel_for(tasks, work)
    assert sorted(done) == list(range(tasks))
    assert len(by) <= min(num_threads, max(1, tasks))
    if num_threads > 1 and tasks == 97:
        assert len(by) > 1


def test_the_first_error_is_raised_and_nothing_more_is_started(num_threads):
    done = []

    def work(task):
        done.append(task)
        if task == 3:
            raise ZeroDivisionError("three")
        time.sleep(0.002)

    with pytest.raises(ZeroDivisionError, match="three"):
        parallel_for(1000, work)
    assert len(done) < 100
    parallel_for(5, done.append)  # and the threads serve again


def test_an_interrupt_of_any_thread_reaches_the_caller(num_threads):
    def work(task):
        if threading.current_thread() is not threading.main_thread() or num_threads == 1:
            raise KeyboardInterrupt
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        parallel_for(1000, work)


def test_callers_in_several_threads_do_not_meet(num_threads):
    totals = [0] * 4

    def call(index):
        lock = threading.Lock()

        def work(task):
            with lock:
                totals[index] += task

        parallel_for(50, work)

    callers = [threading.Thread(target=call, args=(index,)) for index in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert totals == [sum(range(50))] * 4


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_threads_of_its_own(num_threads):
    calls, marks, by = (np.zeros(10, np.int64) for _ in range(3))
    parallel_for(10, lambda task: None)
    share_out(10, 10, mark, calls, marks, by)
    child = os.fork()
    if child == 0:
        done = []
        try:
            parallel_for(10, done.append)
            share_out(10, 10, mark, calls, marks, by)
        finally:
            is_right = sorted(done) == list(range(10)) and (calls == 2).all()
            os._exit(0 if is_right else 1)
    until = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert ended[0] == child, "the child hangs"
    assert os.waitstatus_to_exitcode(ended[1]) == 0


def in_a_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def asked_alone():
    with threads.alone():
        inside = torch.get_num_threads()
    return inside, torch.get_num_threads()


def test_a_thread_has_its_number_again_when_it_was_alone(num_threads):
    assert asked_alone() == (1, num_threads)
    assert in_a_new_thread(asked_alone) == (1, num_threads)


def test_threads_that_begin_meanwhile_are_not_alone(num_threads):
    with threads.alone():
        assert in_a_new_thread(torch.get_num_threads) == num_threads


def test_what_fails_alone_leaves_the_number_as_it_was(num_threads):
    with pytest.raises(ValueError, match="no"), threads.alone():
        raise ValueError("no")
    assert torch.get_num_threads() == num_threads


@parallel
def mark(first, stop, calls, marks, by):
    """Count the calls of each row, and note in which call it was marked."""
    for row in range(first, stop):
        calls[row] += 1
        marks[row] = first
        by[row] = stop


@parallel
def allocate(first, stop, numbers):
    """Ask for more memory than there is, for some of the rows."""
    size = 2**60 if numbers[first] else 1
    numbers[first] = np.empty(size, np.int8).size


@pairwise(tasks=[0, 1, 2, 7, 97], rows=[0, 1, 97])
def test_a_loop_takes_each_row_once_in_even_parts(tasks, rows, num_threads):
    calls, marks, by = (np.zeros(rows, np.int64) for _ in range(3))
    share_out(tasks, rows, mark, calls, marks, by)
    if not tasks:
        return
    assert (calls == 1).all()
    cuts = [task * rows // tasks for task in range(tasks + 1)]
    for first, stop in neighbours(cuts):
        assert (marks[first:stop] == first).all()
        assert (by[first:stop] == stop).all()


def test_a_loop_that_fails_on_any_thread_raises_its_error_and_may_be_called_again(num_threads):
    for row in range(8):
        numbers = np.zeros(8, np.int64)
        numbers[row] = 1
        with pytest.raises(MemoryError):
            share_out(8, 8, allocate, numbers)
    with pytest.raises(MemoryError):  # of several that fail, one says how
        share_out(8, 8, allocate, np.ones(8, np.int64))
    share_out(8, 8, allocate, numbers := np.zeros(8, np.int64))
    assert (numbers == 1).all()


@shared_out
def add_one(first, stop, numbers):
    """Add one to some rows."""
    for row in range(first, stop):
        numbers[row] += 1


@parallel
def count_up(first, stop, team, tasks, numbers):
    """Add one to all rows, once for each of ``first`` to ``stop``, by the threads of a team."""
    for _ in range(first, stop):
        add_one(team, tasks, 0, numbers.size, (numbers,))


@pytest.mark.parametrize("tasks", [1, 2, 13])
def test_parts_of_a_loop_follow_each_other_on_any_number_of_threads(tasks, num_threads):
    numbers = np.zeros(997, np.int64)
    count_up(0, 500, threads.team(), tasks, numbers)
    assert (numbers == 500).all()


def test_loops_share_themselves_out_in_loops_that_are_shared_out(num_threads):
    numbers = np.zeros(5, np.int64)
    share_out(1, 20, count_up, threads.team(), 3, numbers)
    assert (numbers == 20).all()


@pairwise(rows=[1, 7, 8, 15, 16, 17, 63, 64, 65, 129, 500], count=[1, 3])
def test_blocks_are_even_as_many_for_each_thread_and_none_is_a_handful(rows, count, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)
    calls, marks, by = (np.zeros(rows, np.int64) for _ in range(3))
    parallel_blocks(rows, mark, calls, marks, by)
    blocks = sorted(set(zip(marks.tolist(), by.tolist(), strict=True)))
    assert [first for first, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == rows
    sizes = [stop - first for first, stop in blocks]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(rows, 8)
    assert max(sizes) <= 64
    assert (len(blocks) > 1) == (rows > 64 or (count > 1 and rows >= 16))
    assert len(blocks) % count == 0 or len(blocks) == max(1, rows // 8)
