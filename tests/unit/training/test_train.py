"""``regard.train`` takes a recipe in every form, and what it gives answers and is looked into."""

from pathlib import Path

import pytest

import regard
from regard.errors import DataError, RunError, SettingError
from regard.runs import Run
from regard.tasks import Recipe, recipe_from_table
from regard.training import resume
from regard.training.recipes.resolving import resolve

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


def test_a_table_is_trained_and_the_model_predicts_looks_and_loads(home, toy):
    trained = regard.train(TABLE, "runs/a", data="reviews.tsv", reporter=toy.Recorder())
    assert trained.summary["updates"] == 2
    (answer,) = trained.model.predict("room 1 was good")
    assert answer.to_dict()["label"] in ("good", "bad")
    assert "room" in trained.model.look("room 1 was good").page()
    reloaded = regard.load("runs/a").predict(["room 1 was good", {"text": "room 1 was good"}])
    assert [each.to_dict() for each in reloaded] == [answer.to_dict()] * 2


def test_settings_in_another_form_are_refused(home):
    with pytest.raises(SettingError, match=r"settings must be a table of values .* got a list"):
        regard.train(TABLE, "runs/a", data="reviews.tsv", settings=["training.updates=3"])
    assert not Path("runs/a").exists()


def test_the_same_call_resumes(home, toy):
    with pytest.raises(ZeroDivisionError):
        regard.train("mine.toml", "runs/a", reporter=toy.Recorder(lambda update: 1 / 0))
    recorder = toy.Recorder()
    regard.train("mine.toml", "runs/a", reporter=recorder)
    assert ("resumed", 1) in recorder.events
    assert Run.open("runs/a").card["name"] == "mine"


def test_every_form_of_a_recipe_is_the_same(home):
    file = resolve(home / "mine.toml")
    assert resolve(file) is file
    assert resolve("mine.toml").files("train") == [Path("reviews.tsv")]
    table = resolve({**TABLE, "data": {"train": "reviews.tsv"}})
    assert (table.model, table.training) == (file.model, file.training)


def test_settings_and_data_go_over_a_recipe_of_every_form(home):
    over = {"training.updates": 7, "model.hidden_dim": 8}
    for form in ("mine.toml", TABLE, recipe_from_table(TABLE)):
        recipe = resolve(form, ["reviews.tsv"], over)
        assert isinstance(recipe, Recipe)
        assert recipe.training["updates"] == 7
        assert recipe.model.hidden_dim == 8
        assert recipe.files("train") == [home / "reviews.tsv"]
    assert resolve("transformer-tiny", ["a.tsv"]).name == "transformer-tiny"


def test_what_is_no_recipe_is_refused(home):
    with pytest.raises(SettingError, match=r"must be one of .*Did you mean 'rnn-attention'"):
        resolve("rnn-atention")
    with pytest.raises(SettingError, match=r"absent\.toml must be a recipe file; there is none"):
        resolve("absent.toml")
    with pytest.raises(SettingError, match=r"task\.x must be a setting of a table; task is"):
        resolve(TABLE, settings={"task.x": 1})
    with pytest.raises(SettingError, match=r"model\.hiden_dim is not a setting of "):
        resolve(TABLE, settings={"model.hiden_dim": 1})
    with pytest.raises(DataError, match=r"data\.train must name"):
        regard.train(TABLE, "runs/a")
    assert not (home / "runs" / "a").exists()


RECORDS = [
    {"review": f"room {n} was {w}", "stars": s}
    for n in range(20)
    for w, s in (("bad", 1), ("good", 5))
]
SHORT = {"training.updates": 1, "training.validate_every": 1}


class Frame:
    columns = ("review", "stars")

    def to_dict(self, orient):
        assert orient == "records"
        return RECORDS


def test_the_task_of_a_file_alone_is_inferred_as_by_the_command(home, toy):
    trained = regard.train("reviews.tsv", reporter=toy.Recorder(), settings=SHORT)
    assert trained.path == Path("runs/reviews")
    assert trained.model.recipe.task == "classification"
    assert Run.open("runs/reviews").card["name"] == "classification-convolution"


def test_the_task_of_data_in_memory_is_inferred_and_the_data_saved_with_the_run(home, toy):
    trained = regard.train(data=Frame(), settings=SHORT, reporter=toy.Recorder())
    assert Path("runs/data.data.jsonl").is_file()
    assert trained.model.recipe.data.label == "stars"
    assert regard.load("runs/data").evaluate().count > 0
    same = regard.train(RECORDS, "runs/data", settings=SHORT, reporter=toy.Recorder())
    assert same.summary["updates"] == 1
    with pytest.raises(RunError, match="must go on with the data it began with"):
        regard.train(RECORDS[1:], "runs/data", settings=SHORT, reporter=toy.Recorder())


def test_a_run_whose_files_were_named_from_here_resumes_by_its_own_recipe(home, toy, monkeypatch):
    recipe = TABLE | {"data": {"train": ["reviews.tsv"]}}
    regard.train(recipe, "run", settings=SHORT, reporter=toy.Recorder())
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    more = {"training.updates": 2}
    assert resume(home / "run", settings=more, reporter=toy.Recorder()).summary["updates"] == 2
    text = (home / "reviews.tsv").read_text("utf-8")
    (home / "reviews.tsv").write_text(text.partition("\n")[2], "utf-8")
    with pytest.raises(RunError, match="must go on with the text it began with"):
        resume(home / "run", settings={"training.updates": 3}, reporter=toy.Recorder())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "recipe or data must be given; got neither"),
        (
            {"recipe": RECORDS, "data": RECORDS},
            "must be a name, a file, a table or a Recipe; got l",
        ),
        ({"recipe": "reveiws"}, "must be a recipe or a file; there is neither"),
        ({"data": [1.0]}, "row 1 is float"),
        ({"data": 3}, "data must be files, records or rows; got int"),
        ({"recipe": 3}, "data must be files, records or rows; got int"),
        ({"data": [[]]}, "data must have filled rows of one length; got 0 and 0"),
    ],
)
def test_what_is_neither_a_recipe_nor_data_is_refused(home, arguments, message):
    with pytest.raises((DataError, SettingError), match=message):
        regard.train(**arguments)


def test_a_broken_line_of_keys_that_say_nothing_is_no_bug(home):
    Path("a.jsonl").write_text('{"x": 1, "y": 2}\nbroken\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.jsonl:2.*JSON"):
        regard.train("a.jsonl", "runs/a")


def test_calls_that_are_offered_show_their_first_examples(home):
    words = [(word, tone) for word in ("good", "bad") for tone in ("calm", "loud")]
    rows = [f"room {n} was {word}\t{word}\t{tone}\n" for n in range(40) for word, tone in words]
    Path("two.tsv").write_text(f"room\tcleanness\tnoise\n{''.join(rows)}", "utf-8")
    with pytest.raises(SettingError, match=r"two.tsv must be for one job") as caught:
        regard.train("two.tsv")
    first, call, example, *_ = str(caught.value).splitlines()
    assert call.startswith("texts with labels: regard.train("), first
    assert example == "  text: room 0 was good  label: good"


def test_calls_that_are_offered_have_settings_as_a_call_takes_them(home):
    rows = [f"A title {n},The body of text {n} is longer than its title,{n % 4}" for n in range(60)]
    Path("a.csv").write_text("\n".join(["title,body,class", *rows]), encoding="utf-8")
    with pytest.raises(SettingError, match=r"settings=\{'data.text': 'body', 'data.label': 'clas"):
        regard.train("a.csv", "runs/a")
