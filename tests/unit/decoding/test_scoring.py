"""Given answers have the log-probabilities a search gives them."""

import pytest
import torch

from regard.decoding import RepetitionPenalty, beam, sample, score_answers
from regard.errors import RunError, SettingError


def score(markov, tables, answers, **settings):
    ids = {"bos_id": markov.bos, "eos_id": markov.eos}
    return score_answers(markov.step, markov.start(tables), answers, **ids, **settings)


@pytest.mark.parametrize("rules", [[], [RepetitionPenalty(1.3)]], ids=["plain", "rules"])
def test_answers_of_a_search_are_scored_as_the_search_did(markov, rules):
    tables = markov.random_tables(31)
    settings = {"rules": rules, "length_penalty": 0.7}
    for search, width in ((beam, {"beam_size": 1}), (sample, {})):
        answers = markov.run(search, tables, max_lengths=2, **settings, **width)
        hypotheses = [hypothesis for (hypothesis,) in answers]
        for finished in (True, False):
            rows = [
                row
                for row, hypothesis in enumerate(hypotheses)
                if hypothesis.is_finished == finished
            ]
            assert rows
            tokens = [hypotheses[row].tokens for row in rows]
            scored = score(markov, tables[rows], tokens, ends=finished, **settings)
            for row, hypothesis in zip(rows, scored, strict=True):
                assert hypothesis.tokens == hypotheses[row].tokens
                assert hypothesis.log_prob == pytest.approx(hypotheses[row].log_prob, abs=1e-5)
                assert hypothesis.score == pytest.approx(hypotheses[row].score, abs=1e-5)


def test_every_token_has_its_own_log_probability(markov):
    tables = markov.random_tables(3)
    answers = [[], [1, 2, 3, 3], [2]]
    for table, answer, scored in zip(tables, answers, score(markov, tables, answers), strict=True):
        path = (markov.bos, markov.bos, *answer, markov.eos)
        expected = [table[s].item() for s in zip(path, path[1:], path[2:], strict=False)]
        assert scored.log_probs == pytest.approx(expected, abs=1e-6)
        assert scored.log_prob == pytest.approx(sum(expected), abs=1e-5)


def test_nothing_is_scored_without_sentences(markov):
    assert score(markov, markov.random_tables(0), []) == []
    (one,) = score(markov, markov.random_tables(1), [[]], ends=False)
    assert (one.log_probs, one.log_prob, one.score) == ((), 0.0, 0.0)
    first, second = score(markov, markov.random_tables(2), [[], [1]], ends=False)
    assert first.log_probs == ()
    assert len(second.log_probs) == 1


def test_an_impossible_answer_is_impossible(markov):
    tables = markov.random_tables(1)
    (one,) = score(markov, tables, [[markov.bos]])
    assert one.log_prob == -torch.inf


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[1], [1, 0, 2]], "answers must not hold eos_id; got 0 in answer 1. It is added to each"),
        ([[1], [5]], "answers must hold tokens from 0 to 4; got 5"),
        ([[1], [-1]], "answers must hold tokens from 0 to 4; got -1"),
    ],
)
def test_answers_that_cannot_be_are_refused(markov, answers, message):
    with pytest.raises(SettingError, match=message):
        score(markov, markov.random_tables(2), answers)


def test_nan_is_named(markov):
    with pytest.raises(RunError, match="log_probs must be numbers; got NaN"):
        score(markov, markov.random_tables(1) * torch.nan, [[1]])
