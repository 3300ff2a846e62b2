"""A file of one's own, and the commands of the README one after the other."""

import json
import re
import shutil
from typing import Any

import pytest
from tests.end_to_end.tiny_tasks import TINY, TRAINING

from regard.config import write_toml
from regard.inference.evaluation import evaluate as evaluation
from regard.runs import Run
from regard.tasks import TASKS, read_parts, recipe_from_table

pytestmark = pytest.mark.slow

COUNT = 400


def begin(regard, home, task, *settings):
    """Train on one file that has no part to test on, by the recipe of a task in small."""
    (home / TINY[task].file).write_text(TINY[task].text(COUNT), "utf-8")
    table = {name: dict(section) for name, section in TINY[task].table.items()}
    table.setdefault("data", {})["train"] = TINY[task].file
    if task == "pair_matching":
        table["data"]["first"], table["data"]["second"] = 2, 1  # there are few questions
    (home / "recipe.toml").write_text(
        write_toml({"task": task, **table, "training": TRAINING}), "utf-8"
    )
    return regard("train", home / "recipe.toml", "--run", home / "run", *settings)


def about(example, task):
    return getattr(example, "source", None) or task.subject(example)


@pytest.fixture
def known(monkeypatch):
    """Texts of each learned vocabulary, and then those of each baseline."""
    calls: list[list[Any]] = []

    def record(where, name, texts_of, make=lambda function: function):
        original = getattr(where, name)

        def recorded(*arguments, **rest):
            calls.append(list(texts_of(*arguments, **rest)))
            return original(*arguments, **rest)

        monkeypatch.setattr(where, name, make(recorded))

    for entry in TASKS.values():
        if entry.task.learn.__name__ != "recorded":  # of another entry too
            record(entry.task, "learn", lambda recipe, examples: examples, staticmethod)
        if not entry.is_written:
            record(entry.task, "baselines", lambda task, known, examples: known)
    record(evaluation, "trivial_outputs", lambda sources, training_targets, *_: training_targets)
    return calls


@pytest.mark.parametrize("task", TINY)
def test_a_part_of_it_is_held_out_to_test_on(regard, tmp_path, task, known):
    trained = begin(regard, tmp_path, task)
    assert trained.code == 0, trained
    assert re.search(r"\d+ \w+ held out to test on, chosen by hash and not trained", trained.err)
    recipe = recipe_from_table(Run.open(tmp_path / "run").recipe)
    parts = read_parts(recipe)
    train, valid, test = (
        {about(example, TASKS[task].task) for example in each}
        for each in (parts.train, parts.valid, parts.test)
    )
    assert test
    assert not test & train
    assert not test & valid
    evaluated = regard("evaluate", tmp_path / "run", "--json")
    assert evaluated.code == 0, evaluated
    assert json.loads(evaluated.out)["count"] == len(parts.test)
    learned, *by_baselines = known  # of the validation part, and of the test part
    writes = TASKS[task].is_written
    expected = [pair.target if writes else pair for pair in learned]
    assert by_baselines
    assert all(each == expected for each in by_baselines)
    resumed = regard("train", tmp_path / "recipe.toml", "--run", tmp_path / "run")
    assert resumed.code == 0, resumed
    assert "going on from update 2" in resumed.err
    next_line = trained.err.splitlines()[-1]
    assert (
        f"next: regard predict {tmp_path / 'run'}, regard evaluate {tmp_path / 'run'}" in next_line
    )
    assert ("look" in next_line) == TASKS[task].is_shown


def test_a_run_that_began_without_a_test_part_resumes_without(regard, tmp_path):
    begin(regard, tmp_path, "classification", "--set", "training.updates=4")
    run = tmp_path / "run"
    table = Run.open(run).recipe
    shutil.rmtree(run)
    from regard.training.session import fit as train

    table["data"]["test"] = []
    train(recipe_from_table({**table, "training": {**table["training"], "updates": 2}}), run)
    more = ("--set", "training.updates=2")
    again = regard("train", tmp_path / "recipe.toml", "--run", run, *more)
    assert again.code == 0, again
    assert "held out" not in again.err
    message = regard.refused("evaluate", run)
    assert "data.test must name the text to evaluate on; the recipe names none." in message


def test_too_few_are_all_trained_on(regard, tmp_path):
    texts = tmp_path / "texts.tsv"
    texts.write_text("".join(f"word{n} and more\t{n % 2}\n" for n in range(15)), "utf-8")
    settings = ("--set", "training.updates=1", "--set", "training.epochs=none")
    trained = regard("train", "classification-bag", texts, "--run", tmp_path / "run", *settings)
    assert "no texts held out to test on: there are too few. data.test names some" in trained.err
    *_, next_line = trained.err.splitlines()
    assert f"regard evaluate {tmp_path / 'run'} --split valid" in next_line


def test_vocabularies_of_recipes_fit_the_text(regard, tmp_path):
    file = tmp_path / TINY["pair_matching"].file
    file.write_text(TINY["pair_matching"].text(60), "utf-8")
    settings = ["model.hidden_dim=8", "model.embed_dim=8", "data.first=2", "data.second=1"]
    settings += ["training.updates=1", "training.epochs=none"]
    options = [word for each in settings for word in ("--set", each)]
    trained = regard("train", "pair-matching", file, "--run", tmp_path / "run", *options)
    assert trained.code == 0, trained
    assert re.search(
        r"^tokenizer.vocab_size: [\d,]+, not 8,000, since the text allows no more$",
        trained.err,
        re.MULTILINE,
    ), trained
    refused = regard.refused(
        *("train", "pair-matching", file, "--run", tmp_path / "other", *options),
        *("--set", "tokenizer.may_shrink=false"),
    )
    assert "vocab_size must be at most" in refused
