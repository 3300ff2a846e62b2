"""``regard.load`` answers for runs of every job, and makes a page of what was looked at."""

import json
from io import StringIO

import pytest
from rich.console import Console
from tests.end_to_end.tiny_tasks import TINY, TRAINING

import regard
from regard.errors import SettingError
from regard.tasks import recipe_from_table
from regard.training import ConsoleReporter
from regard.training import train as fit

JOBS = ["classification", "language_modelling", "question_answering", "tagging", "translation"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Runs of some jobs, in use."""
    home = tmp_path_factory.mktemp("runs")
    found, silent = {}, ConsoleReporter(Console(file=StringIO()))
    for name in JOBS:
        tiny = TINY[name]
        (home / tiny.file).write_text(tiny.text(120), "utf-8")
        table = {"task": name, **tiny.table, "training": TRAINING}
        table["data"] = {**tiny.table.get("data", {}), "train": str(home / tiny.file)}
        fit(recipe_from_table(table), home / name, reporter=silent)
        found[name] = regard.load(home / name)
    return found


def asked(name):
    line = TINY[name].line(3)
    if name == "tagging":
        return " ".join(row.split("\t")[0] for row in line.splitlines())
    return line if isinstance(line, dict) else line.split("\t")[0]


@pytest.mark.parametrize("name", JOBS)
def test_each_job_answers(name, loaded):
    one, other = loaded[name].predict([asked(name), asked(name)])
    assert one.to_dict() == other.to_dict()
    assert isinstance(one.text(), str)
    json.dumps(one.to_dict())


def test_a_line_may_be_an_object(loaded):
    record = asked("question_answering")
    by_line = loaded["question_answering"].predict(json.dumps(record))
    assert by_line[0].to_dict() == loaded["question_answering"].predict(record)[0].to_dict()


def test_a_language_model_goes_on(loaded):
    (found,) = loaded["language_modelling"].predict("Anna sat", method="greedy", max_tokens=3)
    assert found.text() == "Anna sat" + found.to_dict()["continuations"][0]


@pytest.mark.parametrize("name", ["classification", "tagging", "translation"])
def test_each_is_looked_into(name, loaded):
    page = loaded[name].look(asked(name))
    assert len(page.document.examples) == 1
    assert "<html" in page.page()


def test_settings_of_the_search_are_for_those_that_search(loaded):
    assert len(loaded["translation"].predict("a", n_best=2, beam_size=2)[0].found) == 2
    with pytest.raises(SettingError, match=r"Did you mean 'beam_size'"):
        loaded["translation"].predict("a", beam_sice=2)
    with pytest.raises(SettingError, match="beam_size must be left out for a run of tagging"):
        loaded["tagging"].predict("a", beam_size=2)
    with pytest.raises(SettingError, match="target must be left out for a run of tagging"):
        loaded["tagging"].look("a", target="b")
