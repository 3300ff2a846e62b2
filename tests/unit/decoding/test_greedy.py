import math

import pytest
import torch

from regard.decoding import Average, greedy
from regard.errors import RunError, SettingError, ShapeError


def search(markov, tables, *, max_lengths=8, step=None, **settings):
    return greedy(
        step or markov.step,
        markov.start(tables),
        batch_size=len(tables),
        bos_id=markov.bos,
        eos_id=markov.eos,
        max_lengths=max_lengths,
        **settings,
    )


def by_hand(table, markov, max_length):
    previous, last, tokens, log_prob = markov.bos, markov.bos, [], 0.0
    for _ in range(max_length):
        row = table[previous, last].tolist()
        best = row.index(max(row))
        log_prob += row[best]
        if best == markov.eos:
            return tuple(tokens), log_prob, True
        tokens.append(best)
        previous, last = last, best
    return tuple(tokens), log_prob, False


def test_takes_the_likeliest_token_each_time(markov):
    tables = markov.random_tables(29)
    limits = torch.randint(1, 12, (29,))
    found = search(markov, tables, max_lengths=limits)
    for table, limit, one in zip(tables, limits.tolist(), found, strict=True):
        tokens, log_prob, finished = by_hand(table, markov, limit)
        assert (one.tokens, one.is_finished) == (tokens, finished)
        assert one.log_prob == pytest.approx(log_prob, abs=1e-5)
    assert {one.is_finished for one in found} == {True, False}


def test_score_is_the_log_probability_over_the_penalty_with_the_end_counted(markov):
    for one in search(markov, markov.random_tables(11), length_penalty=Average()):
        assert one.score == pytest.approx(one.log_prob / (len(one.tokens) + one.is_finished))
    for one in search(markov, markov.random_tables(11), length_penalty=0.5):
        length = len(one.tokens) + one.is_finished
        assert one.score == pytest.approx(one.log_prob / math.sqrt((5 + length) / 6))


def test_equal_tokens_go_to_the_lowest_id(markov):
    tables = torch.full((1, 5, 5, 5), 0.2).log()
    assert search(markov, tables, forbidden=[1], min_length=2)[0].tokens == (2, 2)


def test_longest_length_counts_the_end(markov):
    tables = markov.random_tables(1)
    tables[..., 1] = 5.0  # never ends by itself
    one = search(markov, tables, max_lengths=3)[0]
    assert (one.tokens, one.is_finished) == ((1, 1, 1), False)


def test_shortest_length_holds_back_the_end_and_only_that(markov):
    tables = markov.random_tables(13)
    tables[..., markov.eos] = 5.0
    assert all(one.tokens == () for one in search(markov, tables))
    held = search(markov, tables, min_length=3)
    assert all(len(one.tokens) == 3 and one.is_finished for one in held)


def test_forbidden_tokens_never_come(markov):
    tables = markov.random_tables(13)
    assert any(2 in one.tokens for one in search(markov, tables))
    assert not any(2 in one.tokens for one in search(markov, tables, forbidden=[2, 2]))


def test_the_model_s_table_is_left_as_it_is(markov):
    tables = markov.random_tables(3)
    kept = tables.clone()
    search(markov, tables, forbidden=[2], min_length=2)
    assert tables.equal(kept)


def test_finished_sentences_leave_the_batch(markov):
    tables = markov.random_tables(40)
    sizes = []

    def counting(token, state):
        sizes.append(len(token))
        return markov.step(token, state)

    search(markov, tables, step=counting, max_lengths=30)
    assert sizes[0] == 40
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 20


def test_stops_when_all_are_finished(markov):
    tables = markov.random_tables(3)
    tables[..., markov.eos] = 5.0
    steps = []

    def counting(token, state):
        steps.append(1)
        return markov.step(token, state)

    search(markov, tables, step=counting, max_lengths=30)
    assert len(steps) == 1


def test_a_sentence_without_a_possible_token_ends_there(markov):
    tables = markov.random_tables(2)
    tables[0] = -torch.inf
    one = search(markov, tables)[0]
    assert (one.tokens, one.log_prob, one.is_finished) == ((), 0.0, False)


def test_no_sentences_give_no_answers(markov):
    assert search(markov, markov.random_tables(0), max_lengths=torch.zeros(0).long()) == []


def test_an_interrupt_passes_through(markov):
    def interrupted(token, state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(markov, markov.random_tables(2), step=interrupted)


def test_no_graph_is_kept(markov):
    tables = markov.random_tables(2).requires_grad_()

    def watched(token, state):
        assert not torch.is_grad_enabled()
        return markov.step(token, state)

    search(markov, tables, step=watched)
    assert torch.is_grad_enabled()


def test_nan_is_named(markov):
    tables = markov.random_tables(2)
    tables[1] = torch.nan
    with pytest.raises(RunError, match="log_probs must be numbers; got NaN"):
        search(markov, tables)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_lengths": 0}, SettingError, "max_lengths must be at least 1; got 0"),
        ({"min_length": -1}, SettingError, "min_length must be at least 0; got -1"),
        ({"forbidden": [0]}, SettingError, r"forbidden must not hold eos_id; got eos_id=0"),
        (
            {"max_lengths": torch.tensor([3, 3, 3])},
            ShapeError,
            r"max_lengths must be one number, or one per sentence: \(2,\); got \(3,\)",
        ),
    ],
)
def test_wrong_settings_are_refused(markov, settings, error, message):
    with pytest.raises(error, match=message):
        search(markov, markov.random_tables(2), **settings)
