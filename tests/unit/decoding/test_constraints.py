"""Required words: the best answer that holds them, found by trying all."""

import itertools

import pytest
import torch

from regard.decoding import Avoid, NoRepeatedNgrams, Prefix, Required, beam
from regard.decoding.constraints import holds
from regard.errors import SettingError


def search(markov, tables, phrases, **settings):
    return markov.run(beam, tables, ranking=Required(phrases), **settings)


def contains(tokens, phrase):
    size = len(phrase)
    return any(tuple(tokens[i : i + size]) == tuple(phrase) for i in range(len(tokens)))


def all_answers(markov, table, phrases, max_length):
    for length in range(max_length):
        for tokens in itertools.product((1, 2, 3), repeat=length):
            if all(contains(tokens, phrase) for phrase in phrases):
                path = (markov.bos, markov.bos, *tokens, markov.eos)
                steps = zip(path, path[1:], path[2:], strict=False)
                yield sum(table[step].item() for step in steps), tokens


PHRASES = [[[2]], [[1, 2], [3]], [[3, 3, 1]], [[1, 2], [2, 1]], [[1, 1], [1]], [], [[2], [2]]]


def test_a_wide_beam_finds_the_best_answers_that_hold_the_phrases(markov):
    tables = markov.random_tables(len(PHRASES), seed=9)
    outputs = search(
        markov, tables, PHRASES, max_lengths=5, beam_size=250, n_best=5, length_penalty=0.0
    )
    for table, phrases, answers in zip(tables, PHRASES, outputs, strict=True):
        best = sorted(all_answers(markov, table, phrases, 5), reverse=True)[:5]
        ended = [answer for answer in answers if answer.is_finished]
        assert [answer.tokens for answer in ended] == [tokens for _, tokens in best]
        assert [answer.log_prob for answer in ended] == pytest.approx(
            [p for p, _ in best], abs=1e-5
        )


@pytest.mark.parametrize("beam_size", [1, 2, 5, 11])
def test_every_answer_holds_all_phrases_however_narrow_the_beam(markov, beam_size):
    tables = markov.random_tables(14, seed=1, sharpness=4.0)
    for phrases, answers in zip(
        PHRASES * 2,
        search(markov, tables, PHRASES * 2, beam_size=beam_size, n_best=beam_size),
        strict=True,
    ):
        assert answers
        for one in answers:
            assert all(contains(one.tokens, phrase) for phrase in phrases)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_phrases_are_held_where_there_is_just_room(markov, beam_size):
    tables = markov.random_tables(11, seed=2)
    outputs = search(markov, tables, [[[3, 1], [2, 2]]] * 11, max_lengths=5, beam_size=beam_size)
    for (answer,) in outputs:
        assert contains(answer.tokens, (3, 1))
        assert contains(answer.tokens, (2, 2))
    assert any(answer.is_finished for (answer,) in outputs)


def test_without_phrases_it_is_the_plain_beam(markov):
    tables = markov.random_tables(19)
    assert search(markov, tables, [[]] * 19, n_best=4) == markov.run(beam, tables, n_best=4)


def test_required_words_and_rules_go_together(markov):
    tables = markov.random_tables(5, seed=4)
    rules = [Prefix([[1]] * 5), Avoid([[1, 2]])]
    for (one,) in search(markov, tables, [[[2], [3]]] * 5, rules=rules):
        assert one.tokens[0] == 1
        assert {2, 3} <= set(one.tokens)
        assert not contains(one.tokens, (1, 2))


def test_where_it_is_impossible_the_answer_is_unfinished(markov):
    tables = markov.random_tables(1)
    tables[..., 3] = -torch.inf
    (one,) = search(markov, tables, [[[3]]])[0]
    assert not one.is_finished
    assert 3 not in one.tokens


def test_phrases_are_found_anywhere_in_a_beginning():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 3, (2, 31, 5), generator=generator)
    phrases = [[(0, 1), (2,), (1, 1, 1)], [(2, 0, 1), (0,), (1, 2)]]
    padded = torch.tensor([[[*p, *[-1] * (3 - len(p))] for p in each] for each in phrases])
    for each, rows, held in zip(phrases, tokens.tolist(), holds(tokens, padded), strict=True):
        assert held.tolist() == [[contains(row, phrase) for phrase in each] for row in rows]


@pytest.mark.parametrize(
    ("phrases", "settings", "message"),
    [
        ([[[1]]], {}, "phrases must be a list per sentence: 2; got 1. An empty list requires"),
        ([[[1]], [[1], []]], {}, "phrases must hold a token each; got an empty one"),
        ([[], [[1, 0]]], {}, "phrases must not hold eos_id; got 0 for sentence 1"),
        ([[], [[8]]], {}, "phrases must hold tokens from 0 to 4; got 8"),
        (
            [[], [[1, 2, 3], [2, 1, 1, 1]]],
            {},
            r"phrases and the end must fit into max_lengths; got 7 \+ 1 tokens for sentence 1, "
            "whose answer may have 7",
        ),
        (
            [[], [[3, 1, 2]]],
            {"rules": [Avoid([[1, 2]])]},
            r"phrases must not hold what another rule hides; got token 2 at place 2 of "
            r"\[3, 1, 2\], for sentence 1",
        ),
        ([[[3]], []], {"forbidden": [3]}, r"got token 3 at place 0 of \[3\], for sentence 0"),
        ([[[3, 3]], []], {"rules": [NoRepeatedNgrams(1)]}, r"got token 3 at place 1 of \[3, 3\]"),
    ],
)
def test_what_cannot_be_had_is_refused(markov, phrases, settings, message):
    with pytest.raises(SettingError, match=message):
        search(markov, markov.random_tables(2), phrases, **settings)
