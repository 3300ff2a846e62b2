"""Searches find the same with a step that knows the likeliest tokens as with all numbers."""

import random
from importlib import import_module

import pytest
import torch

from regard.decoding import RepetitionPenalty, beam, greedy
from regard.decoding.step import RankingStep
from regard.errors import RunError

from .conftest import BOS, EOS, random_tables, run, start, step

PENALTIES = [0.0, 0.6, 1.0]


class Ranked:
    """The model of ``conftest`` as a step that can return the likeliest tokens alone.

    Attributes:
        vocab_size: Number of its tokens.
        asked: What it was asked for: None for all numbers, else how many.
    """

    def __init__(self, vocab_size=5):
        self.vocab_size, self.asked = vocab_size, []

    def __call__(self, token, state):
        self.asked.append(None)
        return step(token, state)

    def best(self, token, state, count, hidden):
        self.asked.append(count)
        log_probs, state = step(token, state)
        allowed = log_probs.clone()
        allowed[:, list(hidden)] = -torch.inf
        values, tokens = allowed.sort(dim=1, descending=True, stable=True)
        values = torch.nn.functional.pad(values, (0, count), value=-torch.inf)[:, :count]
        tokens = torch.nn.functional.pad(tokens, (0, count))[:, :count]
        return values, tokens.where(values != -torch.inf, 0), state


def tables_of(draw):
    """Random models; some never end, some end at once, some get stuck, some are full of ties."""
    kind = draw.choice(["any", "tied", "sparse", "long"])
    tables = random_tables(draw.randint(1, 9), draw.randint(5, 9), draw.randrange(10**6))
    if kind == "tied":
        tables = tables.round()
    elif kind == "sparse":
        tables = tables.where(tables > -draw.choice([1.5, 2.5]), -torch.inf)
    elif kind == "long":
        tables[..., EOS] -= 4
    return tables


def settings_of(draw, batch_size):
    limits = torch.tensor([draw.randint(1, 9) for _ in range(batch_size)])
    return {
        "batch_size": batch_size,
        "bos_id": BOS,
        "eos_id": EOS,
        "max_lengths": draw.choice([limits, draw.randint(1, 9)]),
        "length_penalty": draw.choice(PENALTIES),
        "min_length": draw.choice([0, 0, 2, 4, 12]),
        "forbidden": draw.sample(range(1, 5), draw.randint(0, 3)),
    }


def test_a_function_is_no_ranking_step():
    assert isinstance(Ranked(), RankingStep)
    assert not isinstance(step, RankingStep)


@pytest.mark.parametrize("search", [greedy, beam])
@pytest.mark.parametrize("seed", range(60))
def test_a_search_finds_the_same(search, seed):
    draw = random.Random(seed)
    tables = tables_of(draw)
    settings, ranked, width = settings_of(draw, len(tables)), Ranked(tables.shape[-1]), 0
    if search is beam:
        width = draw.randint(1, 7)
        settings |= {"beam_size": width, "n_best": draw.randint(1, width)}
    assert search(ranked, start(tables), **settings) == search(step, start(tables), **settings)
    assert set(ranked.asked) == {min(width + 1, ranked.vocab_size)}


@pytest.mark.parametrize("seed", range(40))
def test_a_beam_by_numpy_finds_the_same(seed, monkeypatch):
    draw = random.Random(seed)
    tables, width = tables_of(draw), draw.randint(1, 7)
    sizes = {"beam_size": width, "n_best": draw.randint(1, width)}
    settings = settings_of(draw, len(tables)) | sizes
    compiled = beam(step, start(tables), **settings)
    module = import_module("regard.decoding.beam")  # the name is a function of the package, too
    monkeypatch.setattr(module, "why_not", lambda: "numba is missing")
    assert beam(step, start(tables), **settings) == compiled


@pytest.mark.parametrize(
    ("search", "settings"),
    [(greedy, {"rules": [RepetitionPenalty(3.0)]}), (beam, {"rules": [RepetitionPenalty(3.0)]})],
)
def test_rules_request_all_numbers(search, settings):
    tables, ranked = random_tables(5), Ranked()
    assert run(search, tables, step=ranked, **settings) == run(search, tables, **settings)
    assert set(ranked.asked) == {None}


def test_finished_answers_leave_the_batch():
    rows = []

    class Watched(Ranked):
        def best(self, token, state, count, hidden):
            rows.append(len(token))
            return super().best(token, state, count, hidden)

    run(greedy, random_tables(40, sharpness=1.0), step=Watched(), max_lengths=30)
    assert rows[0] == 40
    assert rows[-1] < 8
    assert rows == sorted(rows, reverse=True)


@pytest.mark.parametrize("search", [greedy, beam])
def test_nan_is_named_and_a_search_of_nothing_finds_nothing(search):
    tables = random_tables(3)
    assert run(search, tables[:0], step=Ranked()) == []
    tables[1] = torch.nan
    with pytest.raises(RunError, match="must be numbers; got NaN"):
        run(search, tables, step=Ranked())
