from itertools import chain

import numpy as np
import pytest

from regard.errors import SettingError
from regard.text import Batches, permutation


def lengths(n, seed=0):
    return np.random.default_rng(seed).integers(1, 40, n)


def make(n=1000, *, max_tokens=200, seed=5, window=128):
    return Batches(lengths(n), lengths(n, 1), max_tokens=max_tokens, seed=seed, window=window)


def order(batches, epoch, cursor=0):
    return [plan.indices.tolist() for plan in batches.epoch(epoch, cursor)]


def test_the_order_never_changes_between_versions():
    batches = Batches(np.arange(1, 8), np.arange(1, 8), max_tokens=12, seed=1, window=4)
    assert order(batches, 2) == [[5], [6], [2, 3], [4], [0, 1]]


def test_a_sentence_beyond_the_budget_is_a_batch_by_itself():
    batches = Batches(np.array([3, 500, 4]), np.array([3, 2, 4]), max_tokens=20, seed=0)
    assert sorted(map(sorted, order(batches, 0))) == [[0, 2], [1]]


def test_sorting_leaves_little_padding():
    assert make(5000, window=5000).padding() < make(5000, window=50).padding()
    same = np.full(100, 7)
    assert Batches(same, same, max_tokens=70, seed=0).padding() == 0


@pytest.mark.parametrize("cursor", [-1, 1001, 1])
def test_a_cursor_inside_a_batch_is_refused(cursor):
    with pytest.raises(
        SettingError, match=rf"cursor must be where a batch of epoch 2 ends; got {cursor}"
    ):
        list(make().epoch(2, cursor))


def test_budgets_must_be_positive():
    with pytest.raises(SettingError, match="max_tokens must be at least 1; got 0"):
        make(max_tokens=0)
    with pytest.raises(SettingError, match="window must be at least 1; got 0"):
        make(window=0)
    with pytest.raises(SettingError, match="window must be divisible by block"):
        make_stored(window=100, block=8)


def test_permutation_has_its_recorded_order():
    assert permutation(7, seed=1, epoch=2).tolist() == [5, 6, 3, 2, 1, 0, 4]
    assert sorted(permutation(1000, seed=0, epoch=0).tolist()) == list(range(1000))


def make_stored(n=1000, *, window=128, block=8, seed=5):
    sizes = np.stack([lengths(n), lengths(n, 1)])
    requests = []

    def lengths_at(indices):
        requests.append(indices)
        return sizes[:, indices]

    batches = Batches.of_stored(
        n, lengths_at, max_tokens=200, seed=seed, window=window, block=block
    )
    return batches, requests


@pytest.mark.parametrize("n", [1, 7, 128, 135, 1000, 1024])
def test_an_epoch_of_stored_samples_resumes_at_every_cursor(n):
    batches, _ = make_stored(n)
    plans, all_batches = list(batches.epoch(3)), order(batches, 3)
    assert sorted(chain.from_iterable(all_batches)) == list(range(n))
    assert plans[-1].cursor == n
    for number, plan in enumerate(plans, 1):
        assert order(batches, 3, plan.cursor) == all_batches[number:]
    assert n < 1000 or order(batches, 0) != all_batches != order(make_stored(n, seed=6)[0], 3)


def test_of_stored_samples_a_window_is_blocks_from_all_over_the_text_shuffled():
    batches, _ = make_stored(4096, window=64)
    first = sorted(
        index for plan in batches.epoch(0) if plan.cursor <= 64 for index in plan.indices
    )
    blocks = {int(index) // 8 for index in first}
    assert first == sorted(block * 8 + offset for block in blocks for offset in range(8))
    assert max(blocks) - min(blocks) > 250


def test_of_stored_samples_only_a_window_is_looked_at():
    batches, requests = make_stored(100_000, window=64)
    next(batches.epoch(0))
    assert [len(indices) for indices in requests] == [64]
    next(batches.epoch(0, 64 * 1000))
    assert [len(indices) for indices in requests] == [64, 64]


def test_of_stored_samples_the_order_never_changes_between_versions():
    sizes = np.arange(1, 12)
    batches = Batches.of_stored(
        11, lambda indices: np.stack([sizes[indices]] * 2), max_tokens=12, seed=1, window=4, block=2
    )
    assert order(batches, 2) == [[6], [7], [4, 5], [3], [0, 1, 2], [9], [10], [8]]
