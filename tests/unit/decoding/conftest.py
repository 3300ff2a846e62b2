"""A model small enough to look through: a table of the next token given the last two."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

BOS, EOS = 4, 0


@dataclass(frozen=True)
class Memory:
    tables: torch.Tensor

    def select(self, rows):
        return Memory(self.tables[rows])


@dataclass(frozen=True)
class Carried:
    """A tree: the memory, and the token before the last one."""

    memory: Memory
    previous: torch.Tensor

    def select(self, rows):
        return Carried(self.memory.select(rows), self.previous[rows])


def step(token, state):
    rows = torch.arange(len(token))
    log_probs = state.memory.tables[rows, state.previous, token]
    return log_probs, Carried(state.memory, token)


def start(tables):
    return Carried(Memory(tables), torch.full((len(tables),), BOS))


def random_tables(batch_size, vocab_size=5, seed=0, sharpness=2.0):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch_size, vocab_size, vocab_size, vocab_size)
    logits = torch.randn(shape, generator=generator) * sharpness
    logits[..., BOS] = -torch.inf
    return logits.log_softmax(-1)


def run(search, tables, step=step, **settings):
    options = {"batch_size": len(tables), "bos_id": BOS, "eos_id": EOS, "max_lengths": 7}
    return search(step, start(tables), **options | settings)


class Counting:
    """The model's step, which notes how many rows it is given."""

    def __init__(self):
        self.rows = []

    def __call__(self, token, state):
        self.rows.append(len(token))
        return step(token, state)


@pytest.fixture
def markov():
    """The model, its start and its ids."""
    return SimpleNamespace(
        step=step,
        start=start,
        random_tables=random_tables,
        bos=BOS,
        eos=EOS,
        run=run,
        counting=Counting(),
    )
