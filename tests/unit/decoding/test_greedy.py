import math

import pytest
import torch

from regard.decoding import greedy


def search(markov, tables, **settings):
    return markov.run(greedy, tables, **{"max_lengths": 8} | settings)


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
    hypotheses = search(markov, tables, max_lengths=limits)
    for table, limit, hypothesis in zip(tables, limits.tolist(), hypotheses, strict=True):
        tokens, log_prob, finished = by_hand(table, markov, limit)
        assert (hypothesis.tokens, hypothesis.is_finished) == (tokens, finished)
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
    assert {hypothesis.is_finished for hypothesis in hypotheses} == {True, False}


def test_score_is_the_log_probability_over_the_penalty_with_the_end_counted(markov):
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
    assert all(hypothesis.tokens == () for hypothesis in search(markov, tables))
    hypotheses = search(markov, tables, min_length=3)
    assert all(len(hypothesis.tokens) == 3 and hypothesis.is_finished for hypothesis in hypotheses)


def test_forbidden_tokens_never_come(markov):
    tables = markov.random_tables(13)
    assert any(2 in one.tokens for one in search(markov, tables))
    assert not any(2 in one.tokens for one in search(markov, tables, forbidden=[2, 2]))


def test_finished_sentences_leave_the_batch(markov):
    search(markov, markov.random_tables(40), step=markov.counting, max_lengths=30)
    sizes = markov.counting.rows
    assert sizes[0] == 40
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 20


def test_no_graph_is_retained(markov):
    tables = markov.random_tables(2).requires_grad_()

    def watched(token, state):
        assert not torch.is_grad_enabled()
        return markov.step(token, state)

    search(markov, tables, step=watched)
    assert torch.is_grad_enabled()
