"""Searches and given translations, step by step, as the page shows them."""

import math
from dataclasses import replace

import pytest

from regard.errors import DataError
from regard.inference import Predictor
from regard.inference.search.tree import followed, searched
from regard.tasks.sequences.translation import TranslationTask


def ready(predictor):
    return predictor.preparation.of(predictor.seq2seq), predictor.sequence_task


def shorter(predictor, ratio):
    decoding = replace(predictor.recipe.decoding, max_ratio=ratio)
    recipe = replace(predictor.recipe, decoding=decoding)
    return Predictor(predictor.model, TranslationTask(recipe, predictor.tokenizer))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_search_is_that_of_translate(predictor, beam_size):
    plain = predictor.translate(["我爱中国。"], beam_size=beam_size, n_best=beam_size)[0]
    output, search = searched(*ready(predictor), "我爱中国。", beam_size=beam_size)
    assert (output.tokens, output.is_finished) == (plain[0].tokens, plain[0].is_finished)
    assert output.score == pytest.approx(plain[0].score, abs=1e-5)
    assert [hypothesis.text for hypothesis in search.answers] == [
        hypothesis.text for hypothesis in plain
    ]
    assert search.beam_size == beam_size
    assert max(map(len, search.steps)) == beam_size


def test_probabilities_multiply_to_that_of_the_output(predictor):
    output, search = searched(*ready(predictor), "我爱中国。", beam_size=3)
    chances = [chance for chance in search.probabilities if chance is not None]
    assert math.prod(chances) == pytest.approx(math.exp(output.log_prob), rel=0.01)
    forced = followed(*ready(predictor), "我爱中国。", output.tokens)
    assert forced.beam_size is None
    assert forced.probabilities[: len(chances)] == pytest.approx(chances, rel=0.01)


def test_an_extension_that_is_kept_is_a_hypothesis_of_the_next_step(predictor):
    _, search = searched(*ready(predictor), "我爱中国。", beam_size=3)
    for step, after in zip(search.steps, search.steps[1:], strict=False):
        if not after[0].extensions:
            break  # cut at the longest length
        extended = {
            (index, longer.text)
            for index, one in enumerate(step)
            for longer in one.extensions
            if longer.outcome == "kept"
        }
        assert extended == {(one.parent, one.text) for one in after}
    texts = [step[index].text for step, index in zip(search.steps, search.path, strict=True)]
    assert "".join(texts).strip() == search.answers[0].text


def test_an_answer_that_was_cut_has_a_last_step_without_a_choice(predictor):
    model = shorter(predictor, 0.01)
    output, search = searched(*ready(model), "我", beam_size=2)
    assert len(search.steps) == len(output.tokens) + 1
    if not output.is_finished:
        assert search.steps[-1][search.path[-1]].extensions == ()
        assert search.probabilities[-1] is None


def test_texts_that_are_not_read_at_once_are_refused(predictor):
    with pytest.raises(DataError, match=r"source must hold text to look at; got an empty line\."):
        searched(*ready(predictor), " ")
    with pytest.raises(DataError, match=r"at most 8 tokens long to be looked at; got \d+\."):
        searched(*ready(predictor), "我爱中国。" * 4)
