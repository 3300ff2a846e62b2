"""An option that would have no effect is refused, whatever its value."""

import pytest

from regard.cli import run_command
from regard.errors import SettingError
from regard.inference import load

NOT_SEARCHED = "must be left out for a run of regression; it is for translators"


@pytest.mark.parametrize(
    ("run", "words", "message"),
    [
        ("translator", "predict RUN FILE --max-tokens 200", "it is for language models"),
        ("translator", "predict RUN FILE --one-line", "it is for language models"),
        ("translator", "predict RUN FILE --method greedy --beam-size 5", "go with method beam"),
        ("translator", "predict RUN FILE --method greedy --beam-size 4", "go with method beam"),
        ("translator", "predict RUN FILE --seed 0", "--seed must go with method sample"),
        (
            "translator",
            "predict RUN FILE --temperature 1",
            "--temperature must go with method samp",
        ),
        ("translator", "predict RUN FILE --avoid ☃", "--avoid must be words that the vocabulary"),
        ("translator", "predict RUN FILE --threads 1", "--threads must go with --input"),
        ("translator", "predict RUN FILE --engine local", "--engine must go with --input"),
        ("translator", "predict RUN FILE --layers 0", "--layers must go with --attention"),
        (
            "translator",
            "predict RUN FILE --score --beam-size 5",
            "--beam-size must be left out with",
        ),
        (
            "translator",
            "predict RUN --input FILE -o OUT --max-tokens 9",
            "it is for language models",
        ),
        (
            "translator",
            "predict RUN --input FILE -o OUT --on-bad-line error",
            "--on-bad-line must be",
        ),
        ("translator", "predict RUN --input FILE -o OUT --actors 2", "go with --engine ray"),
        ("translator", "evaluate RUN FILE --max-tokens 200", "it is for language models"),
        ("translator", "evaluate RUN FILE --split test", "--split must be left out beside files"),
        ("translator", "evaluate RUN --plot-language en", "--plot-language must go with --plot"),
        ("translator", "look RUN a --live --neurons 0.1", "--neurons must be left out with --live"),
        ("translator", "look RUN a --live --pair", "--pair must be left out with --live"),
        ("translator", "look RUN a --live --sharpest 0.0", "--sharpest must be left out"),
        ("letters", "predict RUN FILE --coverage-penalty 0", "it is for runs that write a text"),
        ("letters", "predict RUN FILE --min-length 0", "--min-length must be left out"),
        ("letters", "predict RUN FILE --top-k 3", "--top-k must go with method sample"),
        ("letters", "look RUN a --beam-size 5", "--beam-size must be left out"),
        ("letters", "look RUN a --attribute none --not b", "--not must be left out with --attri"),
        ("points", "predict RUN FILE --n-best 1", NOT_SEARCHED),
        ("points", "predict RUN FILE --seed 0", NOT_SEARCHED),
        ("points", "predict RUN FILE --layers 0", "--layers must be left out for a run of"),
        ("points", "evaluate RUN FILE --method beam", NOT_SEARCHED),
        ("points", "serve --model RUN --precision auto", "--precision must go with a run"),
    ],
)
def test_it_is_refused(run, words, message, tmp_path, request, capsys):
    folder = request.getfixturevalue(f"{run}_run")
    (tmp_path / "lines.txt").write_text("a bad\n", encoding="utf-8")
    names = {"RUN": str(folder), "FILE": str(tmp_path / "lines.txt"), "OUT": str(tmp_path / "out")}
    assert run_command([names.get(word, word) for word in words.split()]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("translator", "predict RUN FILE --method greedy --n-best 1"),
        ("translator", "predict RUN FILE --beam-size 1 --coverage-penalty 0"),
        ("translator", "predict RUN PAIRS --score --length-penalty 1"),
        ("letters", "predict RUN FILE --max-tokens 3"),
        ("letters", "predict RUN FILE --one-line --min-length 2"),
        ("letters", "predict RUN FILE --method sample --seed 0"),
    ],
)
def test_with_an_effect_it_is_taken(run, words, tmp_path, request, capsys):
    folder = request.getfixturevalue(f"{run}_run")
    (tmp_path / "lines.txt").write_text("a bad\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("a bad\ta fed\n", encoding="utf-8")
    names = {"RUN": folder, "FILE": tmp_path / "lines.txt", "PAIRS": tmp_path / "pairs.tsv"}
    assert run_command([str(names.get(word, word)) for word in words.split()]) == 0


def test_in_python_too(translator_run):
    with pytest.raises(SettingError, match="max_tokens must be left out for a run of translation"):
        load(translator_run).predict("a", max_tokens=200)
    with pytest.raises(SettingError, match="seed must go with method sample; got seed=0 with"):
        load(translator_run).predict("a", seed=0)


@pytest.mark.parametrize(
    "words",
    [
        ["predict", ""],
        ["predict", "RUN", " "],
        ["predict", "RUN", "-o", ""],
        ["evaluate", "RUN", ""],
        ["look", "", "a"],
        ["look", "--model", "", "a"],
        ["look", "RUN", "a", "--file", ""],
        ["info", ""],
        ["runs", ""],
        ["serve", ""],
        ["export", "RUN", ""],
        ["demo", "--run", ""],
        ["train", ""],
        ["train", "FILE", "--run", ""],
        ["train", "FILE", "--valid", ""],
        ["data", "check", ""],
    ],
)
def test_an_empty_path_is_no_folder(words, points_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(points_run)  # which an empty path would stand for
    (tmp_path / "lines.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    names = {"RUN": str(points_run), "FILE": str(tmp_path / "lines.csv")}
    assert run_command([names.get(word, word) for word in words]) == 2
    assert " must be a path; got '" in capsys.readouterr().err


def test_an_empty_path_is_no_folder_in_python(points_run, monkeypatch):
    monkeypatch.chdir(points_run)
    with pytest.raises(SettingError, match="run must be a path; got ''"):
        load("")
