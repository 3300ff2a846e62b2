"""Diverse beams, against the paper's loops."""

import math

import pytest
import torch

from regard.decoding import Diverse, beam
from regard.errors import SettingError


def search(markov, tables, ranking, **settings):
    return beam(
        markov.step,
        markov.start(tables),
        ranking=ranking,
        **{"batch_size": len(tables), "bos_id": markov.bos, "eos_id": markov.eos}
        | {"max_lengths": 6, "length_penalty": 0.0}
        | settings,
    )


def by_hand(table, markov, *, groups, width, strength, steps):
    """The beginnings of every group after some steps, where nothing ends."""
    live = [[((), 0.0)] for _ in range(groups)]
    for _ in range(steps):
        chosen = []
        for group in range(groups):
            candidates = []
            for tokens, log_prob in live[group]:
                a, b = (markov.bos, markov.bos, *tokens)[-2:]
                for token in (1, 2, 3):
                    value = table[a, b, token].item()
                    rank = log_prob + value - strength * chosen.count(token)
                    candidates.append((rank, (*tokens, token), log_prob + value))
            candidates.sort(key=lambda one: -one[0])
            live[group] = [(tokens, log_prob) for _, tokens, log_prob in candidates[:width]]
            chosen += [tokens[-1] for tokens, _ in live[group]]
    return [one for group in live for one in group]


@pytest.mark.parametrize(("groups", "width"), [(1, 4), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0])
def test_groups_are_those_of_the_paper(markov, groups, width, strength):
    tables = markov.random_tables(7, seed=2, sharpness=1.0)
    tables[..., markov.eos] = -math.inf
    size = groups * width
    found = search(
        markov, tables, Diverse(groups, strength), beam_size=size, n_best=size, max_lengths=4
    )
    for table, answers in zip(tables, found, strict=True):
        wanted = dict(
            by_hand(table, markov, groups=groups, width=width, strength=strength, steps=4)
        )
        assert {one.tokens for one in answers} == set(wanted)
        for one in answers:
            assert one.log_prob == pytest.approx(wanted[one.tokens], abs=1e-5)


def test_one_group_is_the_plain_beam(markov):
    tables = markov.random_tables(17)
    assert search(markov, tables, Diverse(1), n_best=4) == search(markov, tables, None, n_best=4)


def test_groups_that_do_not_mind_each_other_are_the_plain_beam_of_their_size(markov):
    tables = markov.random_tables(17)
    found = search(markov, tables, Diverse(3, 0.0), beam_size=6, n_best=6)
    for one, other in zip(found, search(markov, tables, None, beam_size=2, n_best=2), strict=True):
        assert [(h.tokens, h.is_finished) for h in one] == [
            (h.tokens, h.is_finished) for h in other
        ]


def test_a_stronger_wish_makes_answers_more_different(markov):
    tables = markov.random_tables(29, seed=1, sharpness=1.0)

    def first_words(strength):
        found = search(markov, tables, Diverse(3, strength), beam_size=3, n_best=3, min_length=1)
        return sum(len({one.tokens[0] for one in answers}) for answers in found)

    assert first_words(0.0) == 29 < first_words(0.7) < first_words(20.0) == 3 * 29


def test_an_answer_does_not_depend_on_its_batch(markov):
    tables = markov.random_tables(9, seed=3)
    settings = {"beam_size": 4, "n_best": 4}
    whole = search(markov, tables, Diverse(2), **settings)
    for row in range(9):
        assert search(markov, tables[row : row + 1], Diverse(2), **settings)[0] == whole[row]


def test_answers_come_once_and_the_best_first(markov):
    for found in search(markov, markov.random_tables(23), Diverse(2, 0.1), beam_size=8, n_best=8):
        order = [(not one.is_finished, -one.score) for one in found]
        assert order == sorted(order)
        assert len({(one.tokens, one.is_finished) for one in found}) == len(found)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diverse(0), "num_groups must be at least 1; got 0"),
        (lambda: Diverse(2, -1.0), "strength must be at least 0; got -1.0"),
    ],
    ids=["groups", "strength"],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_groups_that_do_not_divide_the_beam_are_refused(markov):
    message = "beam_size must be divisible by num_groups; got beam_size=4, num_groups=3"
    with pytest.raises(SettingError, match=message):
        search(markov, torch.zeros(1, 5, 5, 5), Diverse(3))
