from dataclasses import replace

import pytest

from regard.errors import SettingError
from regard.models import ConvSeq2SeqConfig, RnnSeq2SeqConfig, TransformerConfig
from regard.tasks import read_recipe
from regard.tasks.sequences.translation import TranslationTask
from regard.text import Pair
from regard.training.recipes import sentence_pairs
from regard.training.recipes.packaged import packaged_recipe
from regard.training.recipes.resolving import file_settings
from regard.training.settings import TrainingConfig

ZH, EN = "我是第{}个人。", "I am not the man of the number w{}."


def recipe_for(files, settings):
    return sentence_pairs.choose_recipe({**file_settings("train", files), **settings})


def corpus(folder, pairs, *, source=ZH, target=EN, words=9):
    """A corpus of as many pairs, with so many different words."""
    path = folder / "pairs.tsv"
    with path.open("w", encoding="utf-8") as file:
        for number in range(pairs):
            text = f"{source.format(number % words)}\t{target.format(number % words)}\n"
            file.write(text)
    return path


def test_little_text_gets_a_recurrent_model_and_words(tmp_path):
    chosen = recipe_for([corpus(tmp_path, 60)], {"training.minutes": 3})
    recipe = chosen.recipe
    assert isinstance(recipe.model, RnnSeq2SeqConfig)
    assert (recipe.tokenizer.type, recipe.tokenizer.shared) == ("words", False)
    assert (recipe.data.source_language, recipe.data.target_language) == ("zh", "en")
    assert recipe.data.max_length == 32
    assert recipe.training["minutes"] == 3.0
    assert recipe.training["batch_tokens"] == 512
    reasons = "\n".join(chosen.reasons)
    assert "text: 60 pairs, zh to en, 7.0 characters and 11.0 words on average" in reasons
    assert "model: recurrent model with attention" in reasons
    TrainingConfig(**recipe.training)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "training: 3 minutes, some 2,000 passes at most, batches of 512 tokens"),
        ({"training.batch_tokens": 2048}, "passes at most, batches of 2,048 tokens"),
        ({"training.batch_tokens": "auto"}, "passes at most, the largest batches that fit"),
        ({"training.minutes": None, "training.epochs": 2}, "training: batches of 512 tokens"),
        ({"data.max_length": 512}, "sentences: up to 512 tokens; longer ones are left out"),
        ({"model.hidden_dim": 64}, "model: recurrent model with attention, 64 wide; it learns"),
    ],
)
def test_reasons_are_of_the_settings_that_are_used(tmp_path, settings, reason):
    chosen = recipe_for([corpus(tmp_path, 60)], {"training.minutes": 3, **settings})
    assert reason in "\n".join(chosen.reasons)


@pytest.fixture
def little_is_much(monkeypatch):
    """So that tests of larger corpora are quick."""
    monkeypatch.setattr(sentence_pairs, "_FEW_PAIRS", 200)
    monkeypatch.setattr(sentence_pairs, "_CLOSED_VOCABULARY", 100)


@pytest.mark.usefixtures("little_is_much")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "tokenizer: 4,000 subwords, one a side, as only one writes spaces, for "),
        ({"tokenizer.vocab_size": 300}, "tokenizer: 300 subwords, one a side"),
        ({"tokenizer.shared": True}, "tokenizer: 4,000 subwords, one for both sides, for "),
        ({"tokenizer.vocab_size": None}, "tokenizer: subwords, one a side"),
        ({"tokenizer.type": "words"}, "tokenizer: words, as you set, with its usual settings"),
        ({"model.num_decoder_layers": 1}, "model: Transformer, 128 wide, 4 + 1 layers; a larger"),
    ],
)
def test_reasons_for_more_text_are_of_the_settings_that_are_used(tmp_path, settings, reason):
    chosen = recipe_for([corpus(tmp_path, 300, words=300)], settings)
    assert reason in "\n".join(chosen.reasons)


@pytest.mark.usefixtures("little_is_much")
def test_more_text_gets_a_transformer_and_subwords(tmp_path):
    path = corpus(tmp_path, 300, source="the {} a", target="der {} ein", words=300)
    recipe = recipe_for([path], {"training.minutes": 30}).recipe
    assert isinstance(recipe.model, TransformerConfig)
    assert recipe.model.model_dim == 128
    assert (recipe.tokenizer.type, recipe.tokenizer.vocab_size) == ("bpe", 4000)
    assert recipe.tokenizer.shared
    assert recipe.model.tie_embeddings == "all"


@pytest.mark.usefixtures("little_is_much")
def test_sides_of_which_one_has_no_spaces_get_a_vocabulary_each(tmp_path):
    recipe = recipe_for([corpus(tmp_path, 300, words=300)], {"training.minutes": 30}).recipe
    assert not recipe.tokenizer.shared
    assert recipe.model.tie_embeddings == "target"


def test_a_larger_model_takes_text_and_time(tmp_path, monkeypatch):
    pair = Pair("我", "I am here", ("I am here",), "a:1")
    monkeypatch.setattr(sentence_pairs, "_SAMPLE", 100)
    monkeypatch.setattr(TranslationTask, "peek", lambda _: [pair] * 60_000)
    sizes = [
        recipe_for([tmp_path], {"training.minutes": m}).recipe.model.model_dim for m in (5, 600)
    ]
    assert sizes == [128, 256]


def test_time_is_chosen_where_none_is_set(tmp_path):
    chosen = recipe_for([corpus(tmp_path, 60)], {})
    assert chosen.recipe.training["minutes"] == 5.0
    assert "--minutes sets another time" in "\n".join(chosen.reasons)


def test_another_type_comes_with_its_own_settings(tmp_path):
    settings = {"model.type": "conv_seq2seq", "model.hidden_dim": 16}
    chosen = recipe_for([corpus(tmp_path, 60)], {"training.minutes": 1, **settings})
    assert chosen.recipe.model == ConvSeq2SeqConfig(hidden_dim=16)
    assert "model: conv_seq2seq, as you set, with its usual settings" in chosen.reasons


def test_a_transformer_of_few_pairs_is_as_small_as_the_smallest_recipe(tmp_path):
    settings = {"training.minutes": 1, "model.type": "transformer"}
    chosen = recipe_for([corpus(tmp_path, 60)], settings)
    tiny = read_recipe(packaged_recipe("transformer-tiny")).model
    assert chosen.recipe.model == replace(tiny, tie_embeddings="target")
    assert any("model: Transformer, 128 wide, 4 + 4 layers; " in each for each in chosen.reasons)
    narrow = recipe_for([corpus(tmp_path, 60)], {**settings, "model.model_dim": 16})
    assert narrow.recipe.model == replace(chosen.recipe.model, model_dim=16)


def test_a_setting_of_another_model_is_refused_with_the_reason_for_the_chosen_one(tmp_path):
    message = (
        "model.num_heads is not a setting of rnn_seq2seq, but of transformer.*rnn_seq2seq was "
        "chosen: it learns more than a Transformer from so few pairs as 60. model.type sets another"
    )
    with pytest.raises(SettingError, match=message):
        recipe_for([corpus(tmp_path, 60)], {"model.num_heads": 4})
    with pytest.raises(SettingError, match=r"rnn_seq2seq\. There are: .*\. rnn_seq2seq was"):
        recipe_for([corpus(tmp_path, 60)], {"model.num_head": 4})
    with pytest.raises(
        SettingError, match=r"setting of transformer, but of rnn_seq2seq\. There are: [^.]+\.$"
    ):
        recipe_for([corpus(tmp_path, 60)], {"model.type": "transformer", "model.cell": "gru"})


def test_a_section_that_is_no_table_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"training must be a table: \[training\]; got 3"):
        recipe_for([corpus(tmp_path, 60)], {"training": 3})
