"""Finished runs in a moment, for commands to use."""

import io
import sys

import pytest

from regard.runs import Run
from regard.tasks import TASKS, recipe_from_table
from regard.tasks.running_text.running_text import Passage
from regard.text import Pair
from regard.text.reading.points import Point


def save_run(path, table, examples):
    """Make a finished run of a task that has learned from examples; its weights are random."""
    recipe = recipe_from_table(table)
    task = TASKS[recipe.task].task.learn(recipe, examples)
    with Run.create(path, recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
        run.finish(task.build_model().state_dict())
    return path


@pytest.fixture
def points_run(tmp_path):
    """A regression that knows two points."""
    known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
    return save_run(
        tmp_path / "points", {"task": "regression", "model": {"is_learned": True}}, known
    )


@pytest.fixture
def letters_run(tmp_path):
    """A language model of letters."""
    table = {
        "task": "language_modelling",
        "data": {"context": 16},
        "tokenizer": {"type": "characters"},
        "model": {"type": "decoder", "model_dim": 8, "num_heads": 2, "ffn_dim": 8, "num_layers": 1},
        "decoding": {"method": "greedy", "max_tokens": 5},
    }
    return save_run(tmp_path / "letters", table, [Passage(("a bad cab", "a fed bee"), "text:1")])


@pytest.fixture
def typed(monkeypatch):
    """A function that puts text into stdin."""

    def put(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


@pytest.fixture
def translator_run(tmp_path):
    """A translator of letters by a greedy search."""
    table = {
        "task": "translation",
        "data": {"max_length": 8},
        "tokenizer": {"type": "characters"},
        "model": {"type": "rnn_seq2seq", "embed_dim": 4, "hidden_dim": 4, "attention_dim": 4},
    }
    return save_run(tmp_path / "translator", table, [Pair("a bad cab", "a fed bee", (), "text:1")])
