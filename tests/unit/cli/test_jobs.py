"""The words of a command line: recipes, files, and what files are taken for."""

from pathlib import Path

import pytest

from regard.cli import jobs
from regard.cli.jobs import find_recipe, guessed, split_settings
from regard.cli.train import _settings
from regard.errors import SettingError
from regard.tasks.classification.settings import ClassificationData
from regard.training import guessing
from regard.training.guess import Guess, Guesses

LABELLED = "".join(f"It is a text of number {n}\t{'yes' if n % 2 else 'no'}\n" for n in range(24))
TWO_LABELS = "".join(
    f"It is a text of number {n}\t{'yes' if n % 2 else 'no'}\t{'abc'[n % 3]}\n" for n in range(24)
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.tsv").write_text(LABELLED, encoding="utf-8")
    (tmp_path / "two.tsv").write_text(TWO_LABELS, encoding="utf-8")
    return tmp_path


def test_a_typo_offers_the_recipe_whatever_files_follow(here):
    for what in (["transfomer-tiny"], ["transfomer-tiny", "a.en", "b.en"]):
        with pytest.raises(SettingError, match=r"neither. Did you mean 'transformer-tiny'\?"):
            find_recipe(what)
    with pytest.raises(SettingError, match=r"'xyzzy' must be a recipe or a file; .*`regard recip"):
        find_recipe(["xyzzy", "a.tsv"])


def test_files_alone_are_what_they_are_taken_for(here, capsys):
    recipe = find_recipe(["mine.tsv"], ["training.epochs=3"])
    assert (recipe.task, recipe.training["epochs"]) == ("classification", 3)
    assert recipe.files("train") == [here / "mine.tsv"]
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("mine.tsv is taken for texts with labels: column 1 has texts of")
    assert said[1].endswith("regard train classification-convolution mine.tsv")


def test_what_is_not_sure_is_an_error_where_nobody_can_be_asked(here, capsys):
    with pytest.raises(SettingError, match=r"two.tsv must be for one job; it may be for 3"):
        find_recipe(["two.tsv"])
    assert "--set data.text=1 --set data.label=3" in capsys.readouterr().err


def test_one_job_that_is_not_sure_is_told_in_the_singular(here, monkeypatch):
    guess = Guess("texts with labels", "it has two columns", "classification-convolution")
    monkeypatch.setattr(guessing, "guess_jobs", lambda path: Guesses((guess,), is_sure=False))
    with pytest.raises(SettingError, match=r"it is not clear that it is for this one. Give the"):
        find_recipe(["mine.tsv"])


def test_what_is_not_sure_is_asked_at_a_terminal(here, capsys, monkeypatch):
    class Terminal:
        def __init__(self, text):
            self.text = text

        def isatty(self):
            return True

        def readline(self):
            return self.text

    monkeypatch.setattr(jobs.sys, "stdin", Terminal("3\n"))
    monkeypatch.setattr(jobs.sys.stderr, "isatty", lambda: True, raising=False)
    recipe = find_recipe(["two.tsv"])
    assert recipe.settings(ClassificationData).label == 3
    assert "Which number?" in capsys.readouterr().err
    monkeypatch.setattr(jobs.sys, "stdin", Terminal("7\n"))
    with pytest.raises(SettingError, match=r"the number must be one of 1, 2, 3; got '7'"):
        guessed(["two.tsv"])


def test_options_of_files_set_a_split():
    assert split_settings("test", []) == []
    assert split_settings("test", ["held out"]) == ["data.test='held out'"]
    assert split_settings("valid", ["a.en", "a.de"]) == [
        f'data.valid=["{Path.cwd() / "a.en"}", "{Path.cwd() / "a.de"}"]'
    ]


def test_a_name_with_a_line_end_and_a_loop_of_links_are_named_as_they_are(here):
    name = "a 'new'\nline.tsv"
    recipe = find_recipe(["classification-convolution", name])
    assert recipe.files("train") == [Path.cwd() / name]
    Path("loop.tsv").symlink_to("loop.tsv")
    recipe = find_recipe(["classification-convolution", "loop.tsv"])
    assert recipe.files("train") == [Path.cwd() / "loop.tsv"]


def test_a_recipe_may_begin_with_a_byte_order_mark(here):
    Path("mine.toml").write_text('\ufefftask = "regression"\n', encoding="utf-8")
    assert find_recipe(["mine.toml"]).task == "regression"


@pytest.mark.parametrize("name", ["shards", "shards/*.tsv", "s?ards/*.tsv", "./shards"])
def test_a_folder_and_a_pattern_are_what_their_first_file_is(here, name):
    (here / "shards").mkdir()
    for number in (0, 1):
        (here / "shards" / f"{number}.tsv").write_text(LABELLED, encoding="utf-8")
    recipe = find_recipe([name])
    assert recipe.task == "classification"
    assert [file.name for file in recipe.files("train")] == ["0.tsv", "1.tsv"]


def test_tables_of_arrow_are_told_by_their_columns(here):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [line.split("\t") for line in LABELLED.splitlines()]
    table = pyarrow.table({"stars": [row[1] for row in rows], "review": [row[0] for row in rows]})
    parquet.write_table(table, here / "reviews.parquet")
    recipe = find_recipe(["reviews.parquet"])
    assert recipe.task == "classification"
    assert recipe.settings(ClassificationData).text == "review"


def test_minutes_are_in_place_of_the_epochs_that_the_command_does_not_name():
    assert _settings([], 2, None, None) == [
        "training.updates=none",
        "training.epochs=none",
        "training.minutes=2.0",
    ]
    named = _settings(["training.epochs=3"], 2, None, None)
    assert named == ["training.updates=none", "training.epochs=3", "training.minutes=2.0"]
