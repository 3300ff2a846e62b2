"""Tasks of a parallel loop, its errors, forked processes; and a thread that works alone."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.cases import pairwise

from regard.kernels import threads
from regard.kernels.threads import parallel_blocks, parallel_for


@pytest.fixture(params=["torch's", "others"], autouse=True)
def whose(request, monkeypatch):
    """Both kinds of threads, where torch's are GNU's."""
    if request.param == "others":
        monkeypatch.setattr(threads, "in_team", lambda count, do: False)


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
    parallel_for(10, lambda task: None)
    child = os.fork()
    if child == 0:
        done = []
        try:
            parallel_for(10, done.append)
        finally:
            os._exit(0 if sorted(done) == list(range(10)) else 1)
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


@pairwise(rows=[1, 7, 8, 15, 16, 17, 63, 64, 65, 129, 500], count=[1, 3])
def test_blocks_are_even_and_none_is_a_handful(rows, count, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)
    blocks = []
    parallel_blocks(rows, lambda first, stop: blocks.append((first, stop)))
    blocks.sort()
    assert [first for first, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == rows
    sizes = [stop - first for first, stop in blocks]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(rows, 8)
    assert max(sizes) <= 64
    assert (len(blocks) > 1) == (rows > 64 or (count > 1 and rows >= 16))
