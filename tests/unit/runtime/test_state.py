"""States of a prepared model are values, though they share a store."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.runtime import PreparedTransformer
from regard.runtime.state import Store, begin, empty

from .conftest import VOCAB, translator

# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


def best(made, token, state):
    """The best tokens with their log-probabilities as one tensor, and the state after them."""
    values, tokens, state = made.steps.best(token, state, 3, [0])
    return torch.cat([values, tokens.float()], dim=1), state


WAYS = {"step": lambda made, token, state: made.step(token, state), "best": best}


def beginning(length):
    """A prepared model and a state of three rows that have seen so many tokens."""
    made = PreparedTransformer(translator(num_decoder_layers=1))
    state = made.start(torch.randint(4, VOCAB, (3, 5)), torch.tensor([5, 2, 4]))
    for _ in range(length):
        _, state = made.step(torch.randint(4, VOCAB, (3,)), state)
    return made, state


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 31, 32, 33])
def test_a_step_is_the_same_however_often_and_harms_no_successor(way, length):
    go = WAYS[way]
    made, state = beginning(length)
    one, other, last = torch.randint(4, VOCAB, (3, 3))
    first, after = go(made, one, state)
    expected, _ = go(made, last, after)
    for token, rows in ((other, [0, 1, 2]), (one, [2, 2, 0]), (other, [1, 0, 2])):
        go(made, token, state.select(torch.tensor(rows)))
        torch.testing.assert_close(go(made, last, after)[0], expected, atol=0, rtol=0)
    torch.testing.assert_close(go(made, one, state)[0], first, atol=0, rtol=0)


def identity(rows, places):
    return np.repeat(np.arange(rows, dtype=np.int32)[:, None], places, axis=1)


def test_a_store_has_room_until_it_is_full_for_as_many_rows_as_it_has_slots():
    store = Store(2, 3, 5)
    for length in range(store.cache.shape[2]):
        assert store.has_room(length, 3)
        assert store.has_room(length, 2)
        assert not store.has_room(length, 4)
        assert not store.has_room(length - 1, 3)
        store.filled = length + 1
    assert not store.has_room(store.filled, 3)


def test_a_new_store_has_what_belongs_to_its_rows_and_nothing_else():
    store = Store(2, 3, 5, filled=11)
    places = store.cache.shape[2]
    store.cache[:] = np.arange(store.cache.size).reshape(store.cache.shape)
    ancestors = np.random.default_rng(0).integers(0, 3, (4, places)).astype(np.int32)
    made = store.of_rows(ancestors)
    assert made.filled == places
    assert made.cache.shape == (2, 4, 2 * places, 5)
    for row, slots in enumerate(ancestors):
        for place, slot in enumerate(slots):
            assert (made.cache[:, row, place] == store.cache[:, slot, place]).all()


def test_what_is_written_to_a_new_store_is_not_in_the_one_before():
    store = Store(1, 2, 2, filled=2)
    store.cache[:, :, :2] = [[[[1.0, 1], [2, 2]], [[1, 1], [2, 2]]]]
    fork = store.of_rows(identity(2, 1))
    assert fork.filled == 1
    assert (fork.cache[:, :, 0] == 1).all()
    fork.cache[:, :, :2] = 9
    assert (store.cache[:, :, 0] == 1).all()
    assert (store.cache[:, :, 1] == 2).all()


def test_a_chosen_row_brings_its_past_its_padding_and_its_sentence():
    state = begin(3, 1, 2, memory=np.zeros((1, 3, 1, 2), np.float32), lengths=torch.ones(3).long())
    state.starts[:] = [4, 5, 6]
    chosen = state.select(torch.tensor([2, 0, 2, 1]))
    assert chosen.sentences.tolist() == [2, 0, 2, 1]
    assert chosen.starts.tolist() == [6, 4, 6, 5]
    assert chosen.ancestors[:, 0].tolist() == [2, 0, 2, 1]
    assert chosen.store is state.store
    assert state.sentences.tolist() == [0, 1, 2]
    assert state.select(torch.zeros(0, dtype=torch.long)).sentences.tolist() == []


@pytest.mark.parametrize("shape", [(0, 3), (5, 7), (3, 1000, 1000)])
def test_room_can_be_filled_and_is_nobody_elses(shape):
    one, other = empty(shape), empty(shape)
    one[:], other[:] = 1, 2
    assert one.shape == shape
    assert one.dtype == np.float32
    assert (one == 1).all()
    assert (other == 2).all()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems are not asked for pages")
def test_large_room_goes_back_to_the_system():
    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    for mebibytes in (4, 24, 4, 24):  # after which glibc would keep as much
        room = empty((mebibytes, 2**18))
        room[:] = 1
        with_it = resident()
        del room
        assert with_it - resident() > 0.9 * mebibytes * 2**20
