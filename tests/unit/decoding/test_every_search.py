import pytest
import torch

from regard.decoding import beam, greedy, sample, stream
from regard.errors import RunError, SettingError, ShapeError


def every(markov, search, tables, **settings):
    return list(markov.run(search, tables, **settings))


@pytest.mark.parametrize("search", [beam, greedy, sample, stream])
def test_nan_is_named_and_no_sentences_give_no_answers(markov, search):
    tables = markov.random_tables(2)
    assert every(markov, search, tables[:0], max_lengths=torch.zeros(0).long()) == []
    tables[1] = torch.nan
    with pytest.raises(RunError, match="log_probs must be numbers; got NaN"):
        every(markov, search, tables)


@pytest.mark.parametrize("search", [greedy, sample])
def test_where_nothing_is_possible_an_answer_ends_unfinished(markov, search):
    tables = markov.random_tables(2)
    tables[0] = -torch.inf
    first, second = every(markov, search, tables)
    (one,) = first if search is sample else [first]
    assert (one.tokens, one.log_prob, one.is_finished) == ((), 0.0, False)
    assert [second] == every(markov, search, tables[1:])


@pytest.mark.parametrize("search", [beam, greedy, sample, stream])
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
def test_wrong_options_are_refused(markov, search, settings, error, message):
    with pytest.raises(error, match=message):
        markov.run(search, markov.random_tables(2), **settings)
