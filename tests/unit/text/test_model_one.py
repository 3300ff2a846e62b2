"""IBM model 1 beside its formula in plain loops."""

from collections import defaultdict

import numpy as np
import pytest

from regard.errors import SettingError
from regard.text import EOS_ID, Corpus, model_one
from regard.text.corpus import Sequences
from regard.text.model_one import likeliest_targets

SOURCES, TARGETS = 23, 29


def by_the_formula(pairs, rounds):
    """t(target | source) by plain loops; None is the source piece that is none."""
    chances = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for t in target:
                norm = sum(chances[s, t] for s in (*source, None))
                for s in (*source, None):
                    counts[s, t] += chances[s, t] / norm
                    totals[s] += chances[s, t] / norm
        chances = defaultdict(float, {key: counts[key] / totals[key[0]] for key in counts})
    return chances


def drawn(count):
    draw = np.random.default_rng(5)
    return [
        (
            draw.integers(4, SOURCES - 2, draw.integers(0, 7)).tolist(),
            draw.integers(4, TARGETS, draw.integers(0, 6)).tolist(),
        )
        for _ in range(count)
    ]


def corpus_of(pairs):
    return Corpus(*(Sequences.of(side) for side in zip(*pairs, strict=True)))


@pytest.mark.parametrize("at_once", [1, 50, 2**20])
@pytest.mark.parametrize("count", [1, 4, 40])
def test_the_likeliest_are_those_of_the_formula(at_once, count, monkeypatch):
    monkeypatch.setattr(model_one, "_AT_ONCE", at_once)
    pairs = drawn(60)
    right = by_the_formula(pairs, rounds=3)
    sizes = {"source_vocab": SOURCES, "target_vocab": TARGETS}
    found = likeliest_targets(corpus_of(pairs), **sizes, count=count, rounds=3)
    for source, row in enumerate(found):
        ranked = sorted((-right[s, t], t) for s, t in right if s == source)[:count]
        assert row.tolist() == [t for _, t in ranked] + [EOS_ID] * (count - len(ranked))


def test_of_many_pairs_some_are_learned_from(monkeypatch):
    pairs = [([4], [5])] * 50 + [([6], [7])] * 50
    monkeypatch.setattr(model_one, "_IN_ALL", 40)
    met, keys = [], model_one._keys
    monkeypatch.setattr(
        model_one,
        "_keys",
        lambda corpus, part, *sizes: met.append(part) or keys(corpus, part, *sizes),
    )
    found = likeliest_targets(corpus_of(pairs), source_vocab=7, target_vocab=8, count=1)
    assert len(met[0]) == 20
    assert found[[4, 6]].ravel().tolist() == [5, 7]


@pytest.mark.parametrize("name", ["count", "rounds"])
def test_numbers_below_one_are_refused(name):
    sizes = {"source_vocab": SOURCES, "target_vocab": TARGETS, "count": 1}
    with pytest.raises(SettingError, match=f"{name} must be at least 1; got 0"):
        likeliest_targets(corpus_of(drawn(3)), **(sizes | {name: 0}))
