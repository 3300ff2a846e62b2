"""The words of a command line: recipes, files, and what files are taken for."""

from pathlib import Path

import pytest
from rich.cells import cell_len

from regard.cli import jobs
from regard.cli.jobs import parse_arguments, task_of, typed_options
from regard.errors import SettingError
from regard.tasks.settings.data import ClassificationData
from regard.training.recipes import InferredTask, InferredTasks, inferring

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
    for words in (["transfomer-tiny"], ["transfomer-tiny", "a.en", "b.en"]):
        with pytest.raises(SettingError, match=r"neither. Did you mean 'transformer-tiny'\?"):
            parse_arguments(words).resolve({})
    with pytest.raises(SettingError, match=r"'xyzzy' must be a recipe or a file; .*`regard recip"):
        parse_arguments(["xyzzy", "a.tsv"]).resolve({})


def test_the_task_of_files_alone_is_inferred(here, capsys):
    recipe = parse_arguments(["mine.tsv"]).resolve({"training.epochs": 3})
    assert (recipe.task, recipe.training["epochs"]) == ("classification", 3)
    assert recipe.files("train") == [here / "mine.tsv"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("mine.tsv is taken for texts with labels: column 1 has texts of")
    assert lines[1:4] == [
        f"  text: It is a text of number {n}  label: {'yes' if n % 2 else 'no'}" for n in range(3)
    ]
    assert lines[4].endswith("regard train classification-convolution mine.tsv")


def test_the_offered_command_has_the_options_that_were_typed(here, capsys):
    options = typed_options(minutes=2.0, test=("mine.tsv",), settings=("data.label=2",))
    parse_arguments(["two.tsv"]).resolve({"data.label": 2}, options)
    lines = capsys.readouterr().err.splitlines()
    (command,) = (line for line in lines if line.startswith("the command that says so: "))
    assert command.partition(": ")[2] == (
        "regard train classification-convolution two.tsv --minutes 2.0 --test mine.tsv "
        "--set data.label=2"
    )


@pytest.mark.parametrize("width", [40, 60, 100])
def test_examples_are_cut_to_the_terminal(here, capsys, monkeypatch, width):
    rows = "".join(
        f"这是第{n}条很长很长的评论，房间很好，服务也很好。\t{'好坏'[n % 2]}\n" for n in range(24)
    )
    (here / "长.tsv").write_text(rows, encoding="utf-8")
    monkeypatch.setenv("COLUMNS", str(width))
    parse_arguments(["长.tsv"]).resolve({})
    examples = capsys.readouterr().err.splitlines()[1:4]
    assert all(cell_len(line) <= width and line[-1] in "好坏" for line in examples)


def test_an_uncertain_task_is_an_error_without_a_terminal(here, capsys):
    with pytest.raises(SettingError, match=r"two.tsv must be for one job; it may be for 3"):
        parse_arguments(["two.tsv"]).resolve({})
    lines = capsys.readouterr().err.splitlines()
    assert lines[9].endswith("--set data.text=1 --set data.label=3")
    assert lines[10] == "  text: It is a text of number 0  label: a"


def test_one_uncertain_task_is_described_in_the_singular(here, monkeypatch):
    task = InferredTask("texts with labels", "it has two columns", "classification-convolution")
    monkeypatch.setattr(
        inferring, "infer_tasks", lambda path, settings: InferredTasks((task,), is_sure=False)
    )
    with pytest.raises(SettingError, match=r"it is not clear that it is for this one. Give the"):
        parse_arguments(["mine.tsv"]).resolve({})


def test_an_uncertain_task_is_asked_for_at_a_terminal(here, capsys, monkeypatch):
    class Terminal:
        def __init__(self, text):
            self.text = text

        def isatty(self):
            return True

        def readline(self):
            return self.text

    monkeypatch.setattr(jobs.sys, "stdin", Terminal("3\n"))
    monkeypatch.setattr(jobs.sys.stderr, "isatty", lambda: True, raising=False)
    recipe = parse_arguments(["two.tsv"]).resolve({})
    assert recipe.settings(ClassificationData).label == 3
    assert "Which number?" in capsys.readouterr().err
    monkeypatch.setattr(jobs.sys, "stdin", Terminal("7\n"))
    with pytest.raises(SettingError, match=r"the number must be one of 1, 2, 3; got '7'"):
        task_of(["two.tsv"], {})


def test_a_name_with_a_line_end_and_a_loop_of_links_are_named_as_they_are(here):
    name = "a 'new'\nline.tsv"
    recipe = parse_arguments(["classification-convolution", name]).resolve({})
    assert recipe.files("train") == [Path.cwd() / name]
    Path("loop.tsv").symlink_to("loop.tsv")
    recipe = parse_arguments(["classification-convolution", "loop.tsv"]).resolve({})
    assert recipe.files("train") == [Path.cwd() / "loop.tsv"]


def test_a_recipe_may_begin_with_a_byte_order_mark(here):
    Path("mine.toml").write_text('\ufefftask = "regression"\n', encoding="utf-8")
    assert parse_arguments(["mine.toml"]).resolve({}).task == "regression"


@pytest.mark.parametrize("name", ["shards", "shards/*.tsv", "s?ards/*.tsv", "./shards"])
def test_a_folder_and_a_pattern_are_what_their_first_file_is(here, name):
    (here / "shards").mkdir()
    for number in (0, 1):
        (here / "shards" / f"{number}.tsv").write_text(LABELLED, encoding="utf-8")
    recipe = parse_arguments([name]).resolve({})
    assert recipe.task == "classification"
    assert [file.name for file in recipe.files("train")] == ["0.tsv", "1.tsv"]


def test_tables_of_arrow_are_recognised_by_their_columns(here):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [line.split("\t") for line in LABELLED.splitlines()]
    table = pyarrow.table({"stars": [row[1] for row in rows], "review": [row[0] for row in rows]})
    parquet.write_table(table, here / "reviews.parquet")
    recipe = parse_arguments(["reviews.parquet"]).resolve({})
    assert recipe.task == "classification"
    assert recipe.settings(ClassificationData).text == "review"
