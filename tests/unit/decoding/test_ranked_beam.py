"""Searches over a step that ranks: what the plain search over the same numbers finds."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decoding import Hypothesis, beam, greedy
from regard.decoding.step import RankingStep
from regard.errors import RunError

BOS, EOS = 2, 3


@dataclass(frozen=True)
class Rows:
    """A state that remembers which numbers its rows have seen."""

    seen: Tensor

    def select(self, rows: Tensor) -> "Rows":
        return Rows(self.seen[rows])


class Table:
    """Log-probabilities by what was seen so far: few values, so that many are equal."""

    def __init__(self, seed: int, vocab: int, *, levels: int, never: float = 0.0) -> None:
        drawn = np.random.default_rng(seed)
        table = -drawn.integers(1, levels, (97, vocab)).astype(np.float32) / 4
        table[drawn.random(table.shape) < never] = -np.inf
        self.table = torch.from_numpy(table)

    def plain(self, token: Tensor, state: Rows) -> tuple[Tensor, Rows]:
        seen = (state.seen * 31 + token + 1) % len(self.table)
        return self.table[seen], Rows(seen)


class Ranking(Table):
    """The same, which knows the likeliest by itself."""

    def __call__(self, token: Tensor, state: Rows) -> tuple[Tensor, Rows]:
        return self.plain(token, state)

    def best(
        self, token: Tensor, state: Rows, count: int, hidden: list[int]
    ) -> tuple[Tensor, Tensor, Rows]:
        log_probs, state = self.plain(token, state)
        log_probs = log_probs.clone()
        log_probs[:, hidden] = -torch.inf
        best = log_probs.sort(dim=1, descending=True, stable=True)
        values = torch.full((len(token), count), -torch.inf)
        tokens = torch.zeros(len(token), count, dtype=torch.long)
        some = min(count, log_probs.shape[1])
        values[:, :some], tokens[:, :some] = best.values[:, :some], best.indices[:, :some]
        return values, tokens, state


def begin(batch: int) -> Rows:
    return Rows(torch.arange(batch) * 7)


def asked(seed: int, batch: int) -> dict[str, object]:
    drawn = np.random.default_rng(seed)
    return {
        "batch_size": batch,
        "bos_id": BOS,
        "eos_id": EOS,
        "max_lengths": torch.from_numpy(drawn.integers(1, 9, batch)),
        "min_length": int(drawn.choice([0, 0, 2])),
        "forbidden": [[], [0, 1, BOS]][int(drawn.integers(2))],
        "length_penalty": float(drawn.choice([0.0, 0.6, 1.0])),
    }


@pytest.mark.parametrize("vocab", [5, 11])
@pytest.mark.parametrize("levels", [2, 4, 40])
@pytest.mark.parametrize("never", [0.0, 0.6])
def test_a_beam_finds_what_the_plain_search_does(vocab: int, levels: int, never: float) -> None:
    for seed in range(6):
        batch, width = 1 + seed % 4, 1 + seed % 5
        table = Ranking(seed, vocab, levels=levels, never=never)
        assert isinstance(table, RankingStep)
        options = asked(seed, batch) | {"beam_size": width, "n_best": 1 + seed % width}
        plain = beam(table.plain, begin(batch), **options)
        assert beam(table, begin(batch), **options) == plain, seed


@pytest.mark.parametrize("levels", [2, 40])
def test_greedy_finds_what_the_plain_search_does(levels: int) -> None:
    for seed in range(30):
        batch = 1 + seed % 9
        table = Ranking(seed, 7, levels=levels, never=0.4)
        options = asked(seed, batch)
        plain: list[Hypothesis] = greedy(table.plain, begin(batch), **options)
        assert greedy(table, begin(batch), **options) == plain, seed


@pytest.mark.parametrize("search", [greedy, beam])
def test_nan_is_named(search) -> None:
    table = Ranking(0, 7, levels=4)
    table.table[:] = torch.nan
    with pytest.raises(RunError, match="must be numbers; got NaN"):
        search(table, begin(2), **asked(0, 2))
