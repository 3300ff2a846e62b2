"""Samples: as often as the model says, the same in any batch, from the likelier tokens only."""

import math
from collections import Counter

import pytest
import torch

from regard.decoding import greedy, sample
from regard.decoding.sampling import at_quantile, most_likely, nucleus, uniform
from regard.errors import SettingError, ShapeError


def draw(markov, tables, **settings):
    return markov.run(sample, tables, **{"max_lengths": 9} | settings)


def chi_square(counts, probs, total):
    """How far counts are from what was expected, in deviations of the chi-square distribution."""
    possible = [(counts[key], p * total) for key, p in probs.items() if p > 0]
    assert sum(counts.values()) == sum(count for count, _ in possible), "an impossible token"
    value = sum((count - expected) ** 2 / expected for count, expected in possible)
    return (value - (len(possible) - 1)) / math.sqrt(2 * max(1, len(possible) - 1))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_answers_come_as_often_as_their_probability_says(markov, temperature):
    tables = markov.random_tables(1, seed=4, sharpness=1.0).expand(4, -1, -1, -1)
    seeds = torch.tensor([11, 12, 13, 14])
    four = draw(
        markov, tables, num_samples=1000, max_lengths=2, temperature=temperature, seeds=seeds
    )
    samples = [sample for each in four for sample in each]
    by_step = (tables[0] / temperature).softmax(-1)
    probs = {}
    for first in range(5):
        for second in range(5) if first != markov.eos else [None]:
            p = by_step[markov.bos, markov.bos, first].item()
            if second is not None:
                p *= by_step[markov.bos, first, second].item()
            probs[first, second] = p
    counts = Counter()
    for answer in samples:
        tokens = (*answer.tokens, *[markov.eos] * answer.is_finished, None)
        counts[tokens[0], tokens[1]] += 1
    assert chi_square(counts, probs, 4000) < 4


def test_random_numbers_are_even_and_have_nothing_to_do_with_their_neighbours():
    seeds = torch.arange(100).repeat_interleave(100)
    copies = torch.arange(100).repeat(100)
    first, second = uniform(seeds, copies, 0), uniform(seeds, copies, 1)
    assert float(first.min()) >= 0
    assert float(first.max()) < 1
    counts = torch.histc(first, 100, 0, 1)
    assert ((counts - 100).square() / 100).sum() < 99 + 4 * math.sqrt(198)
    square = first.view(100, 100)
    for numbers, neighbours in (
        (first, second),
        (square[1:], square[:-1]),
        (square[:, 1:], square[:, :-1]),
    ):
        pairs = torch.stack([numbers.flatten(), neighbours.flatten()])
        assert abs(float(pairs.corrcoef()[0, 1])) < 4 / 100


def test_a_sample_does_not_depend_on_its_batch_or_on_how_many_there_are(markov):
    tables = markov.random_tables(17, seed=6)
    seeds, limits = torch.arange(17) * 7, torch.randint(3, 9, (17,))
    batched = draw(markov, tables, num_samples=5, seeds=seeds, max_lengths=limits, top_p=0.9)
    assert len({answer.tokens for answers in batched for answer in answers}) > 20
    for rows in (torch.tensor([3]), torch.tensor([16, 0, 5, 5])):
        settings = {"seeds": seeds[rows], "max_lengths": limits[rows], "top_p": 0.9}
        part = draw(markov, tables[rows], num_samples=3, **settings)
        assert part == [batched[row][:3] for row in rows.tolist()]


def test_other_seeds_give_other_samples_and_the_same_give_the_same(markov):
    tables = markov.random_tables(1, sharpness=0.5)
    samples = [draw(markov, tables, num_samples=9, seeds=seed)[0] for seed in (0, 0, 1, 2**63 + 1)]
    assert samples[0] == samples[1] != samples[2]
    assert samples[3] == samples[2]
    assert len({answer.tokens for answer in samples[0]}) > 4


def test_log_probabilities_are_the_models_whatever_is_drawn_from(markov):
    tables = markov.random_tables(11)
    for table, (one,) in zip(
        tables, draw(markov, tables, temperature=0.7, top_k=2, top_p=0.8), strict=True
    ):
        path = (markov.bos, markov.bos, *one.tokens, *[markov.eos] * one.is_finished)
        steps = zip(path, path[1:], path[2:], strict=False)
        total = sum(table[step].item() for step in steps)
        assert one.log_prob == pytest.approx(total, abs=1e-5)
        assert one.score == pytest.approx(total / ((5 + len(path) - 2) / 6) ** 0.6, abs=1e-5)


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}])
def test_drawing_from_one_token_is_greedy(markov, settings):
    tables = markov.random_tables(23)
    plain = markov.run(greedy, tables, max_lengths=9)
    assert [one for (one,) in draw(markov, tables, **settings)] == plain


@pytest.mark.parametrize("mass", [0.05, 0.3, 0.62, 0.9, 0.999])
def test_a_nucleus_is_the_fewest_tokens_with_the_share(mass):
    log_probs = torch.randn(31, 13, generator=torch.Generator().manual_seed(3)) * 2
    log_probs = log_probs.double().log_softmax(1)
    filtered = nucleus(log_probs, mass)
    for before, after in zip(log_probs.exp().tolist(), filtered.exp().tolist(), strict=True):
        expected, total = set(), 0.0
        for token in sorted(range(13), key=lambda t: -before[t]):
            if total >= mass:
                break
            expected.add(token)
            total += before[token]
        assert {t for t in range(13) if after[t] > 0} == expected
        assert total >= mass


def test_the_likeliest_tokens_are_kept():
    log_probs = torch.randn(31, 13, generator=torch.Generator().manual_seed(3))
    for count in (1, 5, 13, 99):
        for before, after in zip(
            log_probs.tolist(), most_likely(log_probs, count).tolist(), strict=True
        ):
            best = sorted(before)[-count:]
            assert [v for v in after if v > -math.inf] == [v for v in before if v in best]


def test_quantiles_never_meet_an_impossible_token():
    log_probs = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).log().expand(4, -1)
    share = torch.tensor([0.0, 0.5 - 2**-52, 0.5, 1 - 2**-52], dtype=torch.float64)
    assert at_quantile(log_probs, share).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"num_samples": 0}, SettingError, "num_samples must be at least 1; got 0"),
        ({"temperature": 0.0}, SettingError, "temperature must be at least 1e-06; got 0.0. Search"),
        ({"temperature": math.nan}, SettingError, "temperature must be at least 1e-06; got nan"),
        ({"temperature": 1e-46}, SettingError, "temperature must be at least 1e-06; got 1e-46"),
        ({"temperature": 1e39}, SettingError, r"temperature must be at most 1000; got 1e\+39"),
        ({"max_lengths": 10**12}, SettingError, "max_lengths must be at most 1000000; got 1"),
        ({"max_lengths": 2.5}, SettingError, "max_lengths must be a whole number; got 2.5"),
        ({"batch_size": True}, SettingError, "batch_size must be a whole number; got True"),
        ({"eos_id": 9}, SettingError, "eos_id must be from 0 to 4; got 9"),
        ({"eos_id": -1}, SettingError, "eos_id must be at least 0; got -1"),
        ({"forbidden": [9]}, SettingError, "forbidden must be from 0 to 4; got 9"),
        ({"forbidden": [-1]}, SettingError, "forbidden must be at least 0; got -1"),
        ({"rules": [3]}, SettingError, "rules must be functions, see Rule; got 3"),
        ({"num_samples": 1001}, SettingError, "num_samples must be at most 1000; got 1001"),
        ({"top_k": 0}, SettingError, "top_k must be at least 1; got 0"),
        ({"top_p": 0.0}, SettingError, "top_p must be above 0 and at most 1; got 0.0. Use 1"),
        ({"top_p": 1.1}, SettingError, "top_p must be above 0 and at most 1; got 1.1"),
        (
            {"seeds": torch.tensor([1, 2, 3])},
            ShapeError,
            r"seeds must be one number, or one per sentence: \(2,\); got \(3,\)",
        ),
    ],
)
def test_wrong_settings_are_refused(markov, settings, error, message):
    with pytest.raises(error, match=message):
        draw(markov, markov.random_tables(2), **settings)
