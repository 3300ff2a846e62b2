"""``regard.load`` answers for runs of every job, and makes a page of what was looked at."""

import json
import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.end_to_end.tiny_tasks import TINY, TRAINING

import regard
from regard.errors import DataError, SettingError
from regard.tasks import recipe_from_table
from regard.training import ConsoleReporter
from regard.training.session import fit
from regard.training.start import with_test

JOBS = ["classification", "language_modelling", "question_answering", "tagging", "translation"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Runs of some jobs, in use."""
    home = tmp_path_factory.mktemp("runs")
    loaded, silent = {}, ConsoleReporter(Console(file=StringIO()))
    for name in JOBS:
        tiny = TINY[name]
        (home / tiny.file).write_text(tiny.text(120), "utf-8")
        table = {"task": name, **tiny.table, "training": TRAINING}
        table["data"] = {**tiny.table.get("data", {}), "train": str(home / tiny.file)}
        fit(with_test(recipe_from_table(table), home / name), home / name, reporter=silent)
        loaded[name] = regard.load(home / name)
    return loaded


def input_text(name):
    line = TINY[name].line(3)
    if name == "tagging":
        return " ".join(row.split("\t")[0] for row in line.splitlines())
    return line if isinstance(line, dict) else line.split("\t")[0]


@pytest.mark.parametrize("name", JOBS)
def test_each_job_answers(name, loaded):
    one, other = loaded[name].predict([input_text(name), input_text(name)])
    assert one.to_dict() == other.to_dict()
    assert isinstance(one.text(), str)
    json.dumps(one.to_dict())


@pytest.mark.parametrize("name", ["classification", "tagging", "translation"])
def test_each_is_looked_into(name, loaded):
    page = loaded[name].look(input_text(name))
    assert len(page.document.examples) == 1
    assert "<html" in page.page()


def test_settings_of_the_search_are_for_those_that_search(loaded):
    assert len(loaded["translation"].predict("a", n_best=2, beam_size=2)[0]) == 2
    with pytest.raises(SettingError, match=r"Did you mean 'beam_size'"):
        loaded["translation"].predict("a", beam_sice=2)
    with pytest.raises(SettingError, match="beam_size must be left out for a run of tagging"):
        loaded["tagging"].predict("a", beam_size=2)
    with pytest.raises(DataError, match=r"target must be one of .*; got 'b'"):
        loaded["tagging"].look("a", target="b")


@pytest.mark.parametrize("name", JOBS)
def test_each_is_evaluated_on_what_was_held_out_and_on_a_file(name, loaded, tmp_path):
    file = tmp_path / TINY[name].file
    file.write_text(TINY[name].text(20), "utf-8")
    assert str(loaded[name].evaluate(str(file)))
    if name == "language_modelling":  # of so short a text nothing was held out
        with pytest.raises(DataError, match=r"data\.test must name the text .* too few"):
            loaded[name].evaluate()
    else:
        assert loaded[name].evaluate().count > 0


def test_data_in_memory_is_predicted_and_evaluated(loaded):
    model, texts = loaded["classification"], ["Anna sat", "Bert ran"]
    answers = model.predict(texts)
    assert model.predict(np.array(texts)) == model.predict([{"text": t} for t in texts]) == answers
    rows = [(text, model.task.labels[0]) for text in texts]
    reports = [model.evaluate(rows), model.evaluate({"text": texts, "label": [rows[0][1]] * 2})]
    assert [each.count for each in reports] == [2, 2]
    assert reports[0].figures == reports[1].figures


@pytest.mark.parametrize("name", ["classification", "language_modelling"])
@pytest.mark.parametrize("record", [None, object(), [[[1.0]]], {"no": "text"}])
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_no_record_is_refused(name, record, loaded):
    with pytest.raises(DataError, match="record 1"):
        loaded[name].predict([record])


def test_it_says_what_it_is(loaded):
    assert re.fullmatch(
        r"Predictor\(task='tagging', model='\w+', parameters=[\d,]+, device='cpu'\)",
        repr(loaded["tagging"]),
    )


def test_its_attention_is_watched(loaded):
    with regard.watch(loaded["translation"]) as calls:
        loaded["translation"].predict(input_text("translation"))
    assert len(calls)
    with pytest.raises(SettingError, match="model must be a torch module or a loaded run; got 'x'"):
        regard.watch("x").__enter__()
