"""Several runs over one text: their weights for the same output."""

import pytest
import torch
from tests.unit.export.random_runs import classifier, translator

from regard.errors import DataError, SettingError
from regard.inference.look import attention_to_source
from regard.inference.seeds import weights_of_runs


@pytest.fixture(scope="module")
def runs():
    """Three translators of one recipe and tokenizer, and other parameters."""
    return [random_translator(seed) for seed in range(3)]


def random_translator(seed, tokenizer="characters"):
    predictor = translator(None, tokenizer={"type": tokenizer})
    generator = torch.Generator().manual_seed(seed)
    for parameter in predictor.model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return predictor


def test_weights_are_those_of_each_run_for_the_same_output(runs):
    spread = weights_of_runs(runs, "我爱中国。", "I love China.")
    assert spread.output == "I love China."
    for run, weights in zip(runs, spread.weights, strict=True):
        look = attention_to_source(run.seq2seq, run.sequence_task, "我爱中国。", "I love China.")
        assert list(spread.output_tokens) == [piece.text for piece in look.output_pieces]
        expected = look.cross()[:-1]
        assert torch.allclose(torch.tensor(weights), expected)
        assert len(spread.source_tokens) == expected.shape[1]
    assert max(max(row) for row in spread.deviation) > 1e-3


def test_without_a_target_it_is_what_most_runs_write(runs):
    spread = weights_of_runs([runs[0], runs[1], runs[1]], "我爱中国。", beam_size=2)
    written = runs[1].translate(["我爱中国。"], beam_size=2)[0].best.text
    assert spread.answers[1:] == (written, written)
    assert spread.output == written


def test_what_cannot_be_averaged_is_an_error(runs):
    with pytest.raises(SettingError, match="runs must cut a text into the same tokens"):
        weights_of_runs([runs[0], random_translator(0, "words")], "我爱中国。", "I love it.")
    with pytest.raises(SettingError, match="runs must write a text for a text"):
        weights_of_runs([classifier(None)] * 2, "我爱中国。")
    with pytest.raises(DataError, match="source must hold text"):
        weights_of_runs(runs, " ")
