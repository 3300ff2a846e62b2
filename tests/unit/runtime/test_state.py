"""States of a prepared model are values, though they share a store."""

import os
import sys
from pathlib import Path

import pytest
import torch

from regard.runtime.state import empty
from regard.runtime.transformer.models import PreparedTransformer

from .conftest import VOCAB, translator

# Hundreds of steps, whose shapes checks would take longer than the steps.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


def best(runtime, token, state):
    """The best tokens with their log-probabilities as one tensor, and the state after them."""
    values, tokens, state = runtime.steps.best(token, state, 3, [0])
    return torch.cat([values, tokens.float()], dim=1), state


WAYS = {"step": lambda model, token, state: model.step(token, state), "best": best}


def beginning(length):
    """A prepared model and a state of three rows that have seen so many tokens."""
    runtime = PreparedTransformer(translator(num_decoder_layers=1))
    state = runtime.start(torch.randint(4, VOCAB, (3, 5)), torch.tensor([5, 2, 4]))
    for _ in range(length):
        _, state = runtime.step(torch.randint(4, VOCAB, (3,)), state)
    return runtime, state


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 31, 32, 33])
def test_a_step_is_the_same_however_often_and_harms_no_successor(way, length):
    go = WAYS[way]
    runtime, state = beginning(length)
    one, other, last = torch.randint(4, VOCAB, (3, 3))
    first, after = go(runtime, one, state)
    expected, _ = go(runtime, last, after)
    for token, rows in ((other, [0, 1, 2]), (one, [2, 2, 0]), (other, [1, 0, 2])):
        go(runtime, token, state.select(torch.tensor(rows)))
        torch.testing.assert_close(go(runtime, last, after)[0], expected, atol=0, rtol=0)
    torch.testing.assert_close(go(runtime, one, state)[0], first, atol=0, rtol=0)


def test_a_chosen_row_brings_its_past_its_padding_and_its_sentence():
    _, state = beginning(0)
    state.starts[:] = [4, 5, 6]
    chosen = state.select(torch.tensor([2, 0, 2, 1]))
    assert chosen.sentences.tolist() == [2, 0, 2, 1]
    assert chosen.starts.tolist() == [6, 4, 6, 5]
    assert chosen.ancestors[:, 0].tolist() == [2, 0, 2, 1]
    assert chosen.store is state.store
    assert state.sentences.tolist() == [0, 1, 2]
    assert state.select(torch.zeros(0, dtype=torch.long)).sentences.tolist() == []


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
