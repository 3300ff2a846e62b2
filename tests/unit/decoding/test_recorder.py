"""A recorded search: the same answers, and everything they were chosen from."""

import pytest
import torch

from regard.decoding import beam, greedy
from regard.errors import SettingError
from regard.inference.search.tree import Recorder


def recorded(search, recorder, markov, tables, **settings):
    """A search of one sentence, driven by the recorder."""
    options = {"batch_size": 1, "bos_id": markov.bos, "eos_id": markov.eos} | settings
    return search(recorder.step, recorder.start(markov.start(tables)), **options)


@pytest.mark.parametrize("seed", range(5))
def test_the_answers_are_the_same_and_can_be_followed_through_the_steps(markov, seed):
    tables = markov.random_tables(1, seed=seed)
    recorder = Recorder(markov.step, top=5, forbidden=(markov.bos,))
    settings = {"max_lengths": 7, "beam_size": 3, "n_best": 3, "forbidden": (markov.bos,)}
    answers = recorded(beam, recorder, markov, tables, **settings)
    assert answers == markov.run(beam, tables, **settings)
    for answer in answers[0]:
        path = [*answer.tokens, *([markov.eos] if answer.is_finished else [])]
        total = 0.0
        for number, token in enumerate(path):
            beginnings = {beginning.tokens: beginning for beginning in recorder.steps[number]}
            beginning = beginnings[answer.tokens[:number]]
            assert beginning.log_prob == pytest.approx(total, abs=1e-5)
            total += dict(beginning.options)[token]
        assert total == pytest.approx(answer.log_prob, abs=1e-5)


def test_options_are_the_likeliest_tokens_that_are_allowed(markov):
    tables = markov.random_tables(1, seed=1)
    recorder = Recorder(markov.step, top=2, forbidden=(1,))
    recorded(greedy, recorder, markov, tables, max_lengths=1)
    (first,) = recorder.steps[0]
    expected = tables[0, markov.bos, markov.bos].clone()
    expected[1] = -torch.inf
    assert [token for token, _ in first.options] == expected.topk(2).indices.tolist()
    likely = [log_prob for _, log_prob in first.options]
    assert likely == pytest.approx(expected.topk(2).values.tolist())
    assert (first.tokens, first.log_prob) == ((), 0.0)


def test_several_sentences_or_no_options_are_refused(markov):
    with pytest.raises(SettingError, match=r"top must be at least 1; got 0\."):
        Recorder(markov.step, top=0)
    recorder = Recorder(markov.step)
    state = recorder.start(markov.start(markov.random_tables(2)))
    with pytest.raises(SettingError, match="must be of one sentence; got 2 rows"):
        recorder.step(torch.tensor([markov.bos, markov.bos]), state)
