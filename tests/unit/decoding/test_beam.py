import itertools
import math

import pytest
import torch

from regard.decoding import beam, greedy
from regard.errors import SettingError

PENALTIES = [0.0, 0.6, 1.0, 2.5]


def search(markov, tables, **settings):
    return markov.run(beam, tables, **{"max_lengths": 6} | settings)


def divisor(penalty, length):
    return ((5 + length) / 6) ** penalty


def all_answers(table, markov, max_length, penalty):
    """Every finished answer with its score, by trying them all."""
    words = [token for token in range(table.shape[0]) if token not in (markov.eos, markov.bos)]
    for length in range(max_length):
        for tokens in itertools.product(words, repeat=length):
            log_prob, previous, last = 0.0, markov.bos, markov.bos
            for token in (*tokens, markov.eos):
                log_prob += table[previous, last, token].item()
                previous, last = last, token
            yield tokens, log_prob / divisor(penalty, length + 1)


def beam_by_hand(table, markov, *, beam_size, n_best, max_length, penalty):
    """Beam search of one sentence in plain loops; stops only at K answers or the longest length."""
    table = table.tolist()
    live, finished = [((), 0.0)], []
    for length in range(1, max_length + 1):
        candidates = []
        for tokens, log_prob in live:
            previous, last = (markov.bos, markov.bos, *tokens)[-2:]
            for token, value in enumerate(table[previous][last]):
                if value > -math.inf:
                    candidates.append((*tokens, token, log_prob + value))
        candidates.sort(key=lambda one: -one[-1])
        finished += [
            (one[:-2], one[-1] / divisor(penalty, length))
            for one in candidates[:beam_size]
            if one[-2] == markov.eos
        ]
        live = [(one[:-1], one[-1]) for one in candidates if one[-2] != markov.eos][:beam_size]
        if len(finished) >= beam_size or not live:
            live = live if len(finished) < n_best else []
            break
    finished.sort(key=lambda one: -one[1])
    rest = [(tokens, log_prob / divisor(penalty, max_length)) for tokens, log_prob in live]
    return ([(*one, True) for one in finished] + [(*one, False) for one in rest])[:n_best]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_wide_beam_finds_what_trying_all_answers_finds(markov, penalty):
    tables = markov.random_tables(7, seed=3)
    for table, answers in zip(
        tables,
        search(markov, tables, max_lengths=5, beam_size=250, n_best=13, length_penalty=penalty),
        strict=True,
    ):
        best = sorted(all_answers(table, markov, 5, penalty), key=lambda answer: -answer[1])[:13]
        assert [answer.tokens for answer in answers] == [tokens for tokens, _ in best]
        assert [answer.score for answer in answers] == pytest.approx(
            [score for _, score in best], abs=1e-5
        )
        assert all(answer.is_finished for answer in answers)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (2, 1), (3, 3), (5, 2), (7, 7)])
def test_agrees_with_plain_loops_that_stop_later(markov, beam_size, n_best, penalty):
    tables = markov.random_tables(31, seed=beam_size)
    limits = torch.randint(1, 11, (31,))
    sizes = {"beam_size": beam_size, "n_best": n_best}
    outputs = search(markov, tables, max_lengths=limits, length_penalty=penalty, **sizes)
    for table, limit, answers in zip(tables, limits.tolist(), outputs, strict=True):
        expected = beam_by_hand(table, markov, max_length=limit, penalty=penalty, **sizes)
        assert [(answer.tokens, answer.is_finished) for answer in answers] == [
            (tokens, finished) for tokens, _, finished in expected
        ]
        scores = [score for _, score, _ in expected]
        assert [answer.score for answer in answers] == pytest.approx(scores, abs=1e-5)


def test_a_beam_of_one_is_greedy(markov):
    tables = markov.random_tables(37)
    limits = torch.randint(1, 15, (37,))
    settings = {"forbidden": [2], "min_length": 1, "length_penalty": 1.0}
    wide = search(markov, tables, max_lengths=limits, beam_size=1, **settings)
    plain = markov.run(greedy, tables, max_lengths=limits, **settings)
    assert [answers[0] for answers in wide] == plain


def test_equal_candidates_go_to_the_earlier_beginning_then_the_lower_id(markov):
    tables = torch.full((1, 5, 5, 5), 0.2).log()
    answers = search(
        markov, tables, beam_size=4, n_best=4, max_lengths=2, min_length=1, forbidden=[markov.bos]
    )[0]
    assert [answer.tokens for answer in answers] == [(1,), (1, 1), (1, 2), (1, 3)]


def test_ties_at_the_edge_of_the_beam_take_the_lowest_ids(markov):
    tables = torch.full((1, 997, 997), 1 / 997).log().unsqueeze(1).expand(-1, 997, -1, -1)
    answers = search(markov, tables, beam_size=3, n_best=3, max_lengths=1, min_length=1)[0]
    assert [answer.tokens for answer in answers] == [(1,), (2,), (3,)]


def test_stops_as_soon_as_nothing_can_catch_up(markov):
    tables = torch.full((1, 5, 5, 5), 0.001).log()
    tables[..., markov.eos] = math.log(0.99)
    counting = markov.counting
    answers = search(markov, tables, step=counting, max_lengths=50, beam_size=4)[0]
    assert counting.rows == [1]
    assert answers[0].tokens == ()
    search(markov, tables, step=counting, max_lengths=50, beam_size=4, n_best=4)
    assert len(counting.rows) > 2


def test_continues_while_a_longer_answer_can_just_overtake(markov):
    tables = torch.full((1, 5, 5, 5), -50.0)
    tables[0, markov.bos, markov.bos, markov.eos] = -1.0
    tables[0, markov.bos, markov.bos, 1] = -1.99
    tables[0, markov.bos, 1, markov.eos] = 0.0
    settings = {"beam_size": 2, "length_penalty": 4.5}
    assert search(markov, tables, max_lengths=1, **settings)[0][0].tokens == ()
    best = search(markov, tables, max_lengths=2, **settings)[0][0]
    assert (best.tokens, best.score) == ((1,), pytest.approx(-1.99 / (7 / 6) ** 4.5))


def test_sentences_that_stop_leave_the_batch(markov):
    tables = markov.random_tables(3)
    tables[1] = torch.full((5, 5, 5), 0.001).log()
    tables[1, ..., markov.eos] = math.log(0.99)
    tables[0, ..., markov.eos] = tables[2, ..., markov.eos] = -30.0
    outputs = search(markov, tables, step=markov.counting, max_lengths=4, beam_size=2)
    assert markov.counting.rows == [3, 4, 4, 4]
    assert [answers[0].is_finished for answers in outputs] == [False, True, False]


def test_unfinished_beginnings_fill_up_after_the_finished(markov):
    tables = markov.random_tables(1)
    tables[..., markov.eos] = -30.0
    tables[0, markov.bos, 1, markov.eos] = 0.0
    tables[0, markov.bos, markov.bos, 1] = 0.0
    answers = search(markov, tables, max_lengths=4, beam_size=3, n_best=3)[0]
    assert [answer.is_finished for answer in answers] == [True, False, False]
    assert answers[0].tokens == (1,)
    assert all(len(answer.tokens) == 4 for answer in answers[1:])


def test_a_sentence_without_a_possible_token_ends_there(markov):
    tables = markov.random_tables(2)
    tables[0, :, markov.bos] = tables[0, :, markov.bos].masked_fill(torch.arange(5) != 1, -math.inf)
    tables[0, :, 1] = -math.inf
    answers = search(markov, tables, beam_size=3, n_best=2)[0]
    assert [(answer.tokens, answer.is_finished) for answer in answers] == [((1,), False)]


def test_a_beam_may_be_wider_than_the_vocabulary(markov):
    outputs = search(markov, markov.random_tables(2), beam_size=40, n_best=40, max_lengths=2)
    assert all(len(answers) == 1 + 3 + 9 for answers in outputs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, r"beam_size must be at least 1; got 0\. Use 1 for greedy search\."),
        ({"n_best": 0}, "n_best must be at least 1; got 0"),
        (
            {"n_best": 3, "beam_size": 2},
            "n_best must be at most beam_size; got n_best=3, beam_size=2. A wider beam",
        ),
    ],
)
def test_wrong_settings_are_refused(markov, settings, message):
    with pytest.raises(SettingError, match=message):
        search(markov, markov.random_tables(2), **settings)
