"""The model in use of a folder: a run's, a bundle's, or one of Hugging Face's."""

from pathlib import Path
from typing import Any

from torch import nn

from regard.checks import check_choice
from regard.devices import CPU, find_device
from regard.devices.kinds import AUTO, Precision
from regard.inference.one_pass import OnePass
from regard.inference.sequences import Sequences
from regard.inference.text import Text
from regard.inference.use import RunInUse
from regard.runs.run import Run
from regard.runtime.preparing import in_precision
from regard.tasks import AnyTask, SequenceTask
from regard.tasks.running_text.language_modelling import LanguageModelling


def kind_of(task: type[AnyTask]) -> type[RunInUse[Any]]:
    """The class of runs of a task in use."""
    if issubclass(task, SequenceTask):
        return Sequences
    return Text if issubclass(task, LanguageModelling) else OnePass


def in_use(model: nn.Module, task: AnyTask) -> RunInUse[Any]:
    """A model with the task that it was trained for."""
    return kind_of(type(task))(model, task)


def load_run(
    path: str | Path, *, precision: Precision = "auto", device: str = AUTO
) -> RunInUse[Any]:
    """The model of a run in use: see :func:`regard.load`."""
    check_choice("precision", precision, Precision)  # before anything is read
    is_on_cpu = precision == "int8" and device == AUTO
    torch_device = CPU if is_on_cpu else find_device(device)
    run = Run.open(path)
    task = run.load_task()
    model = run.build(task.build_model)
    return in_use(in_precision(model.to(torch_device).eval(), precision), task)
