"""Chunks of phases are done once, whoever takes them, comes late or stays away."""

import threading

import numpy as np
import pytest

from regard.kernels.compiling import compiled
from regard.kernels.team import take, take_another, team_of
from regard.kernels.threads import on_each

PHASES, CHUNKS = 50, 7


@compiled
def count_up(team, numbers, by, who):
    """Each chunk of a phase counts on from the one before; ``by`` has who did it."""
    phases, chunks = numbers.shape[0] - 1, numbers.shape[1]
    for phase in range(phases):
        chunk = take(team, phase, chunks)
        while chunk < chunks:
            total = np.int64(0)
            for each in range(chunks):
                total = max(total, numbers[phase, each])
            numbers[phase + 1, chunk] += total + 1
            by[phase, chunk] = who
            chunk = take_another(team, phase, chunks)


def room():
    numbers = np.zeros((PHASES + 1, CHUNKS), np.int64)
    return numbers, np.full((PHASES, CHUNKS), -1)


def check(numbers, by):
    assert (numbers == np.arange(PHASES + 1)[:, None]).all()
    assert (by >= 0).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_phases_follow_each_other_on_any_number_of_threads(threads):
    for _ in range(20):
        team, (numbers, by), names = team_of(threads, PHASES), room(), iter(range(threads))
        on_each(threads, lambda t=team, n=numbers, b=by, w=names: count_up(t, n, b, next(w)))
        check(numbers, by)


def test_nobody_waits_for_threads_that_stay_away_or_come_late():
    team, (numbers, by) = team_of(5, PHASES), room()
    count_up(team, numbers, by, 0)
    check(numbers, by)
    late = threading.Thread(target=count_up, args=(team, numbers, by, 1), daemon=True)
    late.start()
    late.join(timeout=60)
    assert not late.is_alive()
    check(numbers, by)
    assert (by == 0).all()


def test_more_threads_than_cores_make_headway():
    team, (numbers, by) = team_of(16, PHASES), room()
    threads = [
        threading.Thread(target=count_up, args=(team, numbers, by, who), daemon=True)
        for who in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    check(numbers, by)
