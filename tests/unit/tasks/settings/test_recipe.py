from dataclasses import replace
from pathlib import Path

import pytest

from regard.config import parse_settings, write_toml
from regard.errors import SettingError
from regard.models import RnnSeq2SeqConfig
from regard.runs.run import Run
from regard.tasks import DecodingConfig, read_recipe, recipe_from_table, saved_recipe

RECIPE = """
task = "translation"

[data]
train = ["a.zh", "a.en"]
valid = "valid.tsv"
source_language = "zh"
columns = [2, 1]

[tokenizer]
type = "characters"

[model]
type = "rnn_seq2seq"
cell = "lstm"

[training]
updates = 100

[decoding]
beam_size = 3
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path / "recipe.toml"


def test_every_section_is_read(file):
    recipe = read_recipe(file)
    assert recipe.data.train == ("a.zh", "a.en")
    assert recipe.data.columns == (2, 1)
    assert recipe.tokenizer.type == "characters"
    assert recipe.model == RnnSeq2SeqConfig(cell="lstm")
    assert recipe.training == {"updates": 100}
    assert recipe.decoding == DecodingConfig(beam_size=3)


def test_files_are_searched_for_next_to_the_recipe(file):
    recipe = read_recipe(file)
    assert recipe.files("train") == [file.parent / "a.zh", file.parent / "a.en"]
    assert recipe.files("valid") == [file.parent / "valid.tsv"]
    assert recipe.files("test") == []
    absolute = read_recipe(file, {"data.test": "/elsewhere/test.tsv"})
    assert absolute.files("test") == [Path("/elsewhere/test.tsv")]


def test_settings_go_over_the_file(file):
    settings = ["model.cell=gru", "training.updates=5", "model.hidden_dim=7", "data.test=t.tsv"]
    recipe = read_recipe(file, parse_settings(settings))
    assert recipe.model == RnnSeq2SeqConfig(cell="gru", hidden_dim=7)
    assert recipe.training == {"updates": 5}
    assert recipe.data.test == "t.tsv"


def test_a_table_gives_the_recipe_back(file, tmp_path):
    recipe = read_recipe(file)
    saved = tmp_path / "saved.toml"
    saved.write_text(write_toml(recipe.table()), encoding="utf-8")
    again = read_recipe(saved)
    assert again.table() == recipe.table()
    assert again.files("train") == recipe.files("train")


def test_the_phrasebook_is_no_file():
    for name in ("phrasebook", ["phrasebook"], "phrasebook+everyday"):
        recipe = recipe_from_table({"data": {"train": name}})
        assert recipe.uses_phrasebook
        assert recipe.table()["data"]["train"] == name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["modle.cell=gru"], "modle is not a section of a recipe. Did you mean model"),
        (["zzz.cell=gru"], "zzz is not a section of a recipe. There are: task, data, tokenizer"),
        (["data=3"], r"data must be a table: \[data\]; got 3"),
        (
            ["task=translaton"],
            "task must be one of .*translation; got 'translaton'. Did you mean 'translation'",
        ),
        (["task=stars"], r"got 'stars'\. If it is one of your own, run the file that registers it"),
        (["model.type=trans"], "model.type must be one of .*rnn_seq2seq, transformer; got 'trans'"),
        (["model.hiden_dim=3"], "setting of rnn_seq2seq. Did you mean model.hidden_dim"),
        (["model.num_heads=3"], "is not a setting of rnn_seq2seq, but of transformer"),
        (["decoding.beam=3"], "decoding.beam is not a setting. Did you mean decoding.beam_size"),
        (["model.cell=gruu"], "model.cell must be one of .*; got 'gruu'. Did you mean 'gru'"),
        (["data.columns=2"], "data.columns must be a list; got 2"),
        (["decoding.beam_size=0"], "beam_size must be at least 1; got 0. Use 1 for greedy search"),
        (["model.cell"], "--set must read key=value; got 'model.cell'"),
        (["task.x=3"], "task.x must be a setting of a table; task is a value"),
    ],
)
def test_wrong_line_is_named(file, settings, message):
    with pytest.raises(SettingError, match=message):
        read_recipe(file, parse_settings(settings))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"none.toml must be a recipe; got 'No such file"):
        read_recipe(tmp_path / "none.toml")
    with pytest.raises(SettingError, match=r"must be a recipe; got 'Is a directory'"):
        read_recipe(tmp_path)


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text("[data\n", encoding="utf-8")
    with pytest.raises(SettingError, match=r"recipe.toml must be a TOML file"):
        read_recipe(path)


def test_a_removed_task_names_its_replacement():
    with pytest.raises(SettingError, match=r"which is gone\. 'sentence_selection' is"):
        recipe_from_table({"task": "word_answering"})


@pytest.mark.parametrize(
    ("task", "model", "name", "before", "now"),
    [
        ("question_answering", "match", "alignment", "scaled_dot", "dot"),
        ("sentence_selection", "memory_network", "counted_from", "first", "last"),
    ],
)
def test_a_run_from_before_a_setting_means_what_it_meant(task, model, name, before, now, tmp_path):
    table = recipe_from_table({"task": task, "model": {"type": model}}).table()
    assert table["model"][name] == now
    with Run.create(tmp_path / "new", table, task) as run:
        assert run.recipe["model"][name] == now
    del table["model"][name]
    Run.create(tmp_path / "old", table, task)
    saved = Run.open(tmp_path / "old").recipe
    assert saved["model"][name] == before
    assert getattr(recipe_from_table(saved).model, name) == before
    # What is no recipe of ours is left alone.
    assert saved_recipe({"task": "other", "model": {}}) == {"task": "other", "model": {}}
    unknown = {"task": task, "model": {"type": "other"}}
    assert saved_recipe(unknown) == unknown


@pytest.mark.parametrize(
    ("task", "name", "meant"),
    [
        ("translation", "rnn_seq2seq", {"output_bias": False, "beginning": "both"}),
        ("translation", "conv_seq2seq", {"output_bias": False}),
        ("language_modelling", "recurrent", {"output_bias": False}),
    ],
)
def test_a_saved_recipe_means_what_it_did(task, name, meant):
    table = {"task": task, "model": {"type": name}}
    new, old = recipe_from_table(table).model, recipe_from_table(saved_recipe(table)).model
    assert old == replace(new, **meant)
    assert old != new


def test_a_retired_setting_is_dropped_where_it_was_off_and_refused_elsewhere():
    table = recipe_from_table({"model": {"decoder": "self_attention"}}).table()
    assert "decoder" not in table["model"]
    with pytest.raises(SettingError, match=r"model\.decoder must be left out.*got 'ssru'\. A run"):
        recipe_from_table({"model": {"decoder": "ssru"}})


@pytest.mark.parametrize("on_long", ["skip", "error"])
def test_a_run_made_when_long_pairs_could_be_errors_still_loads(on_long):
    saved = {"task": "translation", "data": {"on_long": on_long, "max_length": 9}}
    assert recipe_from_table(saved_recipe(saved)).data.max_length == 9
