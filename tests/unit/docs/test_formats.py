"""Every example of docs/formats.md is read: to train on, from stdin, and of a request."""

import json
import re
import sys
from pathlib import Path

import pytest

from regard.tasks import TASKS, recipe_from_table
from regard.text import Line

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))

from tiny_tasks import TINY  # noqa: E402  (the smallest training of each task)

PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[2:]
BLOCK = re.compile(r"^```(\w+) (\S+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = {name: tiny.table for name, tiny in TINY.items()}


def blocks():
    """Each example: its task, the kind of block, what it is called, and its text."""
    for section in SECTIONS:
        title, _, body = section.partition("\n")
        named = re.findall(r"`(\w+)`", title)
        for kind, name, of, text in BLOCK.findall(body):
            for task in [of] if of else named:
                yield pytest.param(task, kind, name, text, id=f"{task} {name}")


@pytest.fixture
def learned(tmp_path):
    """A task that has learned from its smallest training text."""

    def learn(task):
        tiny = TINY[task]
        file = tmp_path / tiny.file
        file.write_text(tiny.text(12), encoding="utf-8")
        table = {**RECIPES[task], "task": task}
        recipe = recipe_from_table(
            {**table, "data": {**table.get("data", {}), "train": [str(file)]}}
        )
        kind = TASKS[task].task
        return kind.learn(recipe, kind.read(recipe, "train"))

    return learn


@pytest.mark.parametrize(("task", "kind", "name", "text"), list(blocks()))
def test_an_example_is_read(task, kind, name, text, tmp_path, learned):
    if name == "stdin":
        lines = text.splitlines()
        if task == "language_modelling":
            assert lines
            return
        task_of = learned(task)
        if task == "regression":
            task_of.names = ("area", "floor")
        assert all(task_of.parse_line(Line(line, "stdin:1"), "") is not None for line in lines)
    elif kind == "json":
        body, task_of = json.loads(text), learned(task)
        if task == "regression":
            task_of.names = ("area", "floor")
        requests = body.get("records") or body.get("texts") or [body["text"]]
        read = task_of.prompt if task == "language_modelling" else task_of.request
        assert all(read(request, "record 1") is not None for request in requests)
    else:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        data = {"train": [str(file)], **({"max_length": 64} if task == "generation" else {})}
        recipe = recipe_from_table({"task": task, "data": data})
        assert TASKS[task].task.read(recipe, "train")


def test_every_job_has_examples_of_each_way():
    ways_of_task = {}
    for task, kind, name, _ in (block.values for block in blocks()):
        ways_of_task.setdefault(task, set()).add("ask" if name == "stdin" else kind)
    assert set(ways_of_task) == set(TASKS)
    for task, kinds in ways_of_task.items():
        assert kinds == {"text", "ask", "json"}, task


def test_the_chinese_page_has_the_same_examples():
    chinese = (ROOT / "docs" / "formats.zh.md").read_text(encoding="utf-8")
    assert BLOCK.findall(chinese) == BLOCK.findall(PAGE)
