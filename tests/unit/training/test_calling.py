"""``regard.train`` takes a recipe in every form, and what it gives answers and is looked into."""

from pathlib import Path

import pytest

import regard
from regard.errors import DataError, SettingError
from regard.runs import Run
from regard.tasks import Recipe, recipe_from_table
from regard.training.calling import find_recipe

TABLE = {
    "task": "classification",
    "tokenizer": {"type": "words"},
    "model": {"type": "recurrent", "embed_dim": 4, "hidden_dim": 4},
    "training": {"updates": 2, "batch_tokens": 60, "validate_every": 2, "warmup": 1},
}
TOML = """
task = "classification"
data.train = "reviews.tsv"
tokenizer.type = "words"
model = { type = "recurrent", embed_dim = 4, hidden_dim = 4 }
training = { updates = 2, batch_tokens = 60, validate_every = 2, warmup = 1 }
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    rows = [f"room {n} was {word}\t{word}\n" for n in range(40) for word in ("good", "bad")]
    (tmp_path / "reviews.tsv").write_text("".join(rows), "utf-8")
    (tmp_path / "mine.toml").write_text(TOML, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_is_trained_asked_looked_into_and_loaded_again(home, toy):
    trained = regard.train(TABLE, "runs/a", data="reviews.tsv", reporter=toy.Recorder())
    assert trained.summary["updates"] == 2
    (answer,) = trained.model.predict("room 1 was good")
    assert answer.to_dict()["label"] in ("good", "bad")
    assert "room" in trained.model.look("room 1 was good").page()
    again = regard.load("runs/a").predict(["room 1 was good", {"text": "room 1 was good"}])
    assert [each.to_dict() for each in again] == [answer.to_dict()] * 2


def test_a_part_is_held_out_to_test_on_as_by_the_command(home, toy):
    regard.train(TABLE, "runs/a", data="reviews.tsv", reporter=toy.Recorder())
    assert Run.open("runs/a").recipe["data"]["test"] == "held out"


def test_the_same_call_goes_on(home, toy):
    with pytest.raises(ZeroDivisionError):
        regard.train("mine.toml", "runs/a", reporter=toy.Recorder(lambda update: 1 / 0))
    recorder = toy.Recorder()
    regard.train("mine.toml", "runs/a", reporter=recorder)
    assert ("resumed", 1) in recorder.events
    assert Run.open("runs/a").name == "mine"


def test_every_form_of_a_recipe_is_the_same(home):
    file = find_recipe(home / "mine.toml")
    assert find_recipe(file) is file
    assert find_recipe("mine.toml").files("train") == [Path("reviews.tsv")]
    table = find_recipe({**TABLE, "data": {"train": "reviews.tsv"}})
    assert (table.model, table.training) == (file.model, file.training)


def test_settings_and_data_go_over_a_recipe_of_every_form(home):
    over = {"training.updates": 7, "model.hidden_dim": 8}
    for form in ("mine.toml", TABLE, recipe_from_table(TABLE)):
        found = find_recipe(form, data=["reviews.tsv"], settings=over)
        assert isinstance(found, Recipe)
        assert found.training["updates"] == 7
        assert found.model.hidden_dim == 8
        assert found.files("train") == [home / "reviews.tsv"]
    assert find_recipe("transformer-tiny", data="a.tsv").name == "transformer-tiny"


def test_what_is_no_recipe_is_refused(home):
    with pytest.raises(SettingError, match=r"must be one of .*Did you mean 'rnn-attention'"):
        find_recipe("rnn-atention")
    with pytest.raises(SettingError, match=r"absent\.toml must be a recipe file; there is none"):
        find_recipe("absent.toml")
    with pytest.raises(SettingError, match=r"task\.x must be a setting of a section; task is"):
        find_recipe(TABLE, settings={"task.x": 1})
    with pytest.raises(SettingError, match=r"model\.hiden_dim is not a setting"):
        find_recipe(TABLE, settings={"model.hiden_dim": 1})
    with pytest.raises(DataError, match=r"data\.train must name"):
        regard.train(TABLE, "runs/a")
    assert not (home / "runs" / "a").exists()
