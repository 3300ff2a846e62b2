"""The table of tasks: what training, prediction and commands rely on, of every one."""

import pytest

from regard.errors import SettingError
from regard.models import MODELS
from regard.tasks import (
    TASKS,
    DataConfig,
    DecodingConfig,
    OnePassTask,
    SequenceTask,
    TaskEntry,
    recipe_from_table,
    register_task,
)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_of_one_kind_and_whole(name):
    task = TASKS[name].task
    kinds = [kind for kind in (OnePassTask, SequenceTask) if issubclass(task, kind)]
    assert len(kinds) == 1
    assert not task.__abstractmethods__
    assert TASKS[name].is_written == (kinds == [SequenceTask])
    assert set(task.metrics.values()) <= {1, -1}


def test_a_task_from_outside_is_one_that_recipes_may_name(monkeypatch):
    monkeypatch.setattr("regard.tasks.registry.TASKS", dict(TASKS))
    entry = TaskEntry(
        data=DataConfig,
        models=MODELS,
        decoding=DecodingConfig,
        load=lambda: TASKS["translation"].task,
    )
    from regard.tasks import registry

    register_task("mine", entry)
    register_task("mine", entry)  # again, as a notebook's cell may
    assert registry.TASKS["mine"] is entry
    assert "mine" not in TASKS
    assert recipe_from_table({"task": "translation"}).task == "translation"


def test_a_class_that_lacks_what_a_task_must_have_is_refused(monkeypatch):
    class Missing(SequenceTask):
        metrics = {}  # noqa: RUF012  (as people write it)

    monkeypatch.setattr("regard.tasks.registry.TASKS", dict(TASKS))
    entry = TaskEntry(data=DataConfig, models=MODELS, decoding=DecodingConfig, load=lambda: Missing)
    with pytest.raises(SettingError, match="Missing must have baselines, parse_line, "):
        register_task("missing", entry)


@pytest.mark.parametrize("name", [n for n, e in TASKS.items() if not e.is_written])
def test_only_losses_that_can_be_smoothed_are(name):
    kind = TASKS[name].task
    if not kind.can_smooth:
        task = object.__new__(kind)
        task.recipe = recipe_from_table({"task": name})
        with pytest.raises(SettingError, match=f"label_smoothing must be 0 for {name}; got 0.1"):
            task.loss(None, None, smoothing=0.1)
