"""Rules: each by loops, kept by every search, and refused where they contradict."""

import itertools
import math

import pytest
import torch

from regard.decoding import (
    NoRepeatedNgrams,
    Prefix,
    RepetitionPenalty,
    Written,
    beam,
    greedy,
    sample,
)
from regard.errors import SettingError

V, R, T = 7, 29, 11


@pytest.fixture
def written():
    tokens = torch.randint(0, V, (R, T), generator=torch.Generator().manual_seed(1))
    return Written(tokens, torch.arange(R) % 3)


@pytest.fixture
def log_probs():
    return torch.randn(R, V, generator=torch.Generator().manual_seed(2)).log_softmax(1)


def hidden(log_probs, rule, written):
    filtered = rule(log_probs, written)
    assert torch.equal(filtered[filtered != -torch.inf], log_probs[filtered != -torch.inf])
    return [{t for t in range(V) if row[t] == -math.inf} for row in filtered.tolist()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 13])
def test_ngrams_that_would_come_twice_are_hidden(size, log_probs, written):
    for row, excluded in zip(
        written.tokens.tolist(), hidden(log_probs, NoRepeatedNgrams(size), written), strict=True
    ):
        ngrams = [tuple(row[i : i + size]) for i in range(T - size + 1)]
        assert excluded == {t for t in range(V) if (*row, t)[T + 1 - size :] in ngrams}


@pytest.mark.parametrize("penalty", [0.5, 1.7])
def test_what_is_written_is_penalised_once(penalty, log_probs, written):
    penalised = RepetitionPenalty(penalty)(log_probs, written)
    for row, before, after in zip(
        written.tokens.tolist(), log_probs.tolist(), penalised.tolist(), strict=True
    ):
        expected = [value * (penalty if t in row else 1) for t, value in enumerate(before)]
        assert after == pytest.approx(expected, rel=1e-6)


def test_rules_change_nothing_they_are_given(log_probs, written):
    before = log_probs.clone()
    for rule in (NoRepeatedNgrams(1), RepetitionPenalty(2.0), Prefix([[0] * 12] * 3)):
        assert not torch.equal(rule(log_probs, written), before)
        assert torch.equal(log_probs, before)


def searches(markov, tables, **settings):
    yield [[one] for one in markov.run(greedy, tables, **settings)]
    yield markov.run(beam, tables, n_best=3, **settings)
    yield markov.run(sample, tables, num_samples=5, **settings)


@pytest.mark.parametrize("min_length", [0, 3])
def test_every_search_respects_every_rule(markov, min_length):
    tables = markov.random_tables(13, seed=5)
    prefixes = [[], [2], [3, 1, 2], *[[1]] * 10]
    rules = [Prefix(prefixes), NoRepeatedNgrams(2)]
    for outputs in searches(markov, tables, rules=rules, min_length=min_length):
        for prefix, answers in zip(prefixes, outputs, strict=True):
            for answer in answers:
                assert list(answer.tokens[: len(prefix)]) == prefix
                pairs = list(itertools.pairwise(answer.tokens))
                assert len(set(pairs)) == len(pairs)
                assert len(answer.tokens) >= min_length or not answer.is_finished


def test_a_repetition_penalty_counts_in_the_log_probability(markov):
    tables = markov.random_tables(17, seed=2)
    rule = RepetitionPenalty(1.5)
    for outputs in searches(markov, tables, rules=[rule]):
        for table, answers in zip(tables, outputs, strict=True):
            for answer in answers:
                path = (markov.bos, markov.bos, *answer.tokens, *[markov.eos] * answer.is_finished)
                total = 0.0
                for index, (a, b, token) in enumerate(zip(path, path[1:], path[2:], strict=False)):
                    repeated = token in answer.tokens[:index]
                    total += table[a, b, token].item() * (1.5 if repeated else 1)
                assert answer.log_prob == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": [Prefix([[1]])]}, "prefixes must be one per sentence: 2; got 1. An empty one"),
        (
            {"rules": [Prefix([[], [1] * 8])]},
            "prefixes must be at most max_lengths long; got 8 tokens for sentence 1, whose answer "
            "may have 7",
        ),
        ({"rules": [Prefix([[1], [1, 0]])]}, "prefixes must not hold eos_id; got 0 for sentence 1"),
        (
            {"rules": [Prefix([[], [1, 5]])]},
            "prefixes must hold tokens from 0 to 4; got 5. Was it encoded with another",
        ),
        (
            {"rules": [NoRepeatedNgrams(1), Prefix([[2, 2], []])]},
            r"prefixes must not hold what another rule hides; got token 2 at position 1 of "
            r"\[2, 2\], for sentence 0",
        ),
        (
            {"rules": [Prefix([[3], []])], "forbidden": [3]},
            r"got token 3 at position 0 of \[3\], for sentence 0",
        ),
    ],
)
def test_rules_that_cannot_be_satisfied_are_refused_by_every_search(markov, settings, message):
    tables = markov.random_tables(2)
    for search in (greedy, beam, sample):
        with pytest.raises(SettingError, match=message):
            markov.run(search, tables, **settings)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda: RepetitionPenalty(0), "penalty must be at least 0.01; got 0.0. Use 1 to"),
        (lambda: RepetitionPenalty(1e-300), "penalty must be at least 0.01; got 1e-300"),
        (lambda: NoRepeatedNgrams(0), "size must be at least 1; got 0"),
    ],
    ids=["repetition", "tiny repetition", "ngrams"],
)
def test_rules_out_of_range_are_refused(rule, message):
    with pytest.raises(SettingError, match=message):
        rule()
