from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.tiny_tasks import TINY, TRAINING

from regard.cli.evaluate import evaluate
from regard.inference import evaluation
from regard.tasks import TASKS, recipe_from_table
from regard.training.session import fit as train

pytestmark = pytest.mark.slow

COUNT = {"language_modelling": 500, "masked_language_modelling": 500}


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The examples of every vocabulary that a training learns, and so of its model."""
    found: list[Any] = []
    for work in {entry.task for entry in TASKS.values()}:

        def learn(recipe: Any, examples: Any, *, really: Any = work.learn) -> Any:
            found.extend(examples)
            return really(recipe, examples)

        monkeypatch.setattr(work, "learn", staticmethod(learn))
    return found


@pytest.mark.parametrize("task", sorted(TINY))
def test_baselines_learn_from_what_the_model_learned_from(
    task: str, learned: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny, job = TINY[task], TASKS[task].task
    (tmp_path / tiny.file).write_text(tiny.text(COUNT.get(task, 60)), "utf-8")
    table = {name: {**section} for name, section in tiny.table.items()}
    table["data"] = {"train": tiny.file, **table.get("data", {})}
    recipe = recipe_from_table({"task": task, **table, "training": TRAINING}, folder=tmp_path)
    train(recipe, tmp_path / "run")
    given: list[tuple[Any, Any]] = []
    if not TASKS[task].is_written:
        really = job.baselines

        def baselines(self: Any, known: Any, examples: Any) -> Any:
            given.append((known, examples))
            return really(self, known, examples)

        monkeypatch.setattr(job, "baselines", baselines)
        wanted = learned
    else:
        evaluated = evaluation.evaluate

        def spied(outputs: Any, right: Any, *, training_targets: Any, **rest: Any) -> Any:
            given.append((training_targets, [references[0] for references in right]))
            return evaluated(outputs, right, training_targets=training_targets, **rest)

        monkeypatch.setattr(evaluation, "evaluate", spied)
        wanted = [pair.target for pair in learned]
    evaluate(tmp_path / "run", split="valid", as_json=True)
    ((known, examples),) = given
    assert known == wanted
    assert len(examples)
    if task != "generation":  # where different stories have the same answers
        assert not any(example in known for example in examples)


def test_naive_bayes_does_not_know_the_reviews_it_is_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Labels by a coin of each text's own: nothing can be known of a text that was not learned.
    rows = [f"word{n} thing{n}\t{('good', 'bad')[n // 7 % 2]}" for n in range(1000)]
    (tmp_path / "reviews.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    table = {"data": {"train": "reviews.tsv"}, **TINY["classification"].table}
    recipe = recipe_from_table(
        {"task": "classification", **table, "training": TRAINING}, folder=tmp_path
    )
    train(recipe, tmp_path / "run")
    capsys.readouterr()
    evaluate(tmp_path / "run", split="valid")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "naive Bayes" in line]
    assert float(line.split("accuracy ")[1].split(",")[0]) < 80, line
