"""Streams: the tokens of greedy search and of samples, no later than they are chosen."""

import pytest
import torch

from regard.decoding import Draw, NoRepeatedNgrams, Prefix, greedy, sample, stream
from regard.errors import SettingError, ShapeError


def collected(chosen, count, eos):
    tokens, totals, last = [[] for _ in range(count)], [0.0] * count, [None] * count
    for one in chosen:
        assert last[one.sentence] is not True, "a token after the last"
        tokens[one.sentence].append(one.token)
        totals[one.sentence] += one.log_prob
        last[one.sentence] = one.is_last
    assert all(last)
    return tokens, totals


@pytest.mark.parametrize("rules", [[], [NoRepeatedNgrams(2)]], ids=["plain", "rules"])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_stream_has_the_tokens_of_the_search(markov, rules, is_drawn):
    tables = markov.random_tables(23)
    common = {"rules": rules, "max_lengths": torch.randint(1, 9, (23,))}
    seeds = torch.arange(23)
    draw = Draw(seeds=seeds, top_p=0.9) if is_drawn else None
    streamed = markov.run(stream, tables, draw=draw, **common)
    tokens, totals = collected(streamed, 23, markov.eos)
    if is_drawn:
        answers = markov.run(sample, tables, seeds=seeds, top_p=0.9, **common)
        expected = [answer for (answer,) in answers]
    else:
        expected = markov.run(greedy, tables, **common)
    assert tokens == [[*answer.tokens, *[markov.eos] * answer.is_finished] for answer in expected]
    assert totals == pytest.approx([answer.log_prob for answer in expected], abs=1e-5)


def test_the_model_continues_only_on_request_and_retains_no_graph(markov):
    tables = markov.random_tables(2).requires_grad_()
    tables.data[..., markov.eos] = -30.0
    steps = []

    def counting(token, state):
        assert not torch.is_grad_enabled()
        steps.append(len(token))
        return markov.step(token, state)

    chosen = markov.run(stream, tables, step=counting)
    assert steps == []
    assert [next(chosen).sentence for _ in range(3)] == [0, 1, 0]
    assert torch.is_grad_enabled()
    assert steps == [2, 2]
    chosen.close()
    assert steps == [2, 2]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"rules": [Prefix([[1] * 9] * 2)]}, SettingError, "prefixes must be at most max_lengths"),
        ({"draw": Draw(seeds=torch.arange(3))}, ShapeError, "seeds must be one number, or one per"),
    ],
    ids=["prefix", "seeds"],
)
def test_wrong_settings_are_refused_before_the_first_token(markov, changed, error, message):
    with pytest.raises(error, match=message):
        markov.run(stream, markov.random_tables(2), **changed)
