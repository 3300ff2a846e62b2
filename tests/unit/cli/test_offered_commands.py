"""Readings of a file that are offered, and what ``data check`` says of what ``train`` refuses."""

import json
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.app import run_command

WORDS = ["room", "bath", "garden", "waiter", "view", "bed", "lift", "breakfast", "staff", "price"]


def sentence(row, size=6):
    return f"The {' '.join(random.Random(row).choices(WORDS, k=size))} on day {row}."


def write(path, header, row, count=40):
    rows = [header] if header else []
    rows += [row(n) for n in range(count)]
    path.write_text("".join("\t".join(cells) + "\n" for cells in rows), encoding="utf-8")


ASKED = {
    "two labels": (
        ["review's text", "who, where", "mood"],
        lambda n: [sentence(n), "abc"[n % 3], "good" if n % 2 else "bad"],
    ),
    "two labels, no header": (
        None,
        lambda n: [sentence(n), "abc"[n % 3], "good" if n % 2 else "bad"],
    ),
    "a title and a body": (
        ["title", "body", "class"],
        lambda n: [f"Of the {WORDS[n % 10]} {n}", sentence(n, 40), "xyz"[n % 3]],
    ),
    "names twice": (
        ["What?", "label", "label"],
        lambda n: [sentence(n), "abc"[n % 3], "good" if n % 2 else "bad"],
    ),
    "three texts": (
        ["article", "short", "shorter"],
        lambda n: [sentence(n, 60), sentence(n + 99, 12), sentence(n + 400, 7)],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_reading_that_is_offered_has_a_command_that_works(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a 'b'.tsv", *ASKED[name])
    assert run_command(["data", "check", "a 'b'.tsv", "--examples", "1"]) == 2
    told = capsys.readouterr().err.splitlines()
    commands = [f"regard {line.partition(': regard ')[2]}" for line in told if ": regard " in line]
    assert len(commands) > 1
    for command in commands:
        code = run_command(shlex.split(command)[1:])
        said = capsys.readouterr()
        assert (code in (0, 1), "error:" in said.err, "refuses" in said.out) == (
            True,
            False,
            False,
        ), command


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_texts_alone_become_running_text_by_the_command_that_is_offered(
    tmp_path, monkeypatch, capsys, ending
):
    monkeypatch.chdir(tmp_path)
    texts = [sentence(n, 30) for n in range(30)]
    rows = {
        "csv": [f"A{n}x;{text}" for n, text in enumerate(texts)],
        "tsv": [f"A{n}x\t{text}" for n, text in enumerate(texts)],
        "jsonl": [json.dumps({"id": f"A{n}x", "story": text}) for n, text in enumerate(texts)],
    }[ending]
    header = {"csv": ["id;story"], "tsv": ["id\tstory"], "jsonl": []}[ending]
    Path(f"a.{ending}").write_text("".join(f"{row}\n" for row in [*header, *rows]), "utf-8")
    assert run_command(["train", f"a.{ending}"]) == 2
    command = capsys.readouterr().err.partition("for a language model: ")[2].strip()
    making, _, training = command.rpartition(" && ")
    if making:
        making = making.replace("python", shlex.quote(sys.executable))
        subprocess.run(making, shell=True, check=True)
        assert Path("a-text.txt").read_text("utf-8").splitlines() == texts
    checking = shlex.split(training.replace("regard train", "regard data check"))[1:]
    assert run_command(checking) in (0, 1)
    assert "passages: train:" in capsys.readouterr().out


REFUSED = {
    "one label": lambda n: [sentence(n), "good"],
    "a label a text": lambda n: [sentence(n), f"label{n}"],
    "a label but once": lambda n: [sentence(n), "bad" if n == 0 else "good"],
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("count", [9, 140])
def test_data_check_says_what_train_refuses(tmp_path, monkeypatch, capsys, name, count):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.tsv", ["text", "label"], REFUSED[name], count)
    assert run_command(["train", "classification-convolution", "a.tsv", "--run", "run"]) == 2
    reason = capsys.readouterr().err.splitlines()[-1].removeprefix("error: ")
    assert run_command(["data", "check", "classification-convolution", "a.tsv"]) == 1
    out = capsys.readouterr().out
    assert f"! `regard train` refuses this: 1\n    {reason}\n" in out
    assert str(tmp_path) not in out


def test_a_clean_file_takes_few_lines_and_is_called_as_it_was_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.tsv", ["text", "label"], lambda n: [sentence(n), f"label {n % 12}"], 240)
    assert run_command(["data", "check", "a.tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 6
    assert "(a.tsv:" in lines[2]
    assert lines[-1] == "No problems found."
