"""Run folders as trainings leave them, made without one."""

from types import SimpleNamespace

import pytest
import torch

from regard.runs import Run
from regard.runs.card import Provenance


def make(path, *, name=None, task="translation", finished=True, losses=(2.0, 1.5), **settings):
    """A run that was validated every 10 updates, with so many tokens a second."""
    model = {"type": settings.pop("type", "transformer"), "model_dim": settings.pop("dim", 8)}
    training = {"updates": 100, "metric": "loss", "learning_rate": 0.1} | settings
    table = {"task": task, "data": {}, "model": model, "training": training}
    with Run.create(path, table, task, Provenance(name=name)) as run:
        for number, loss in enumerate(losses, 1):
            update = 10 * number
            figures = {"loss": loss, "bleu": 40 - loss}
            run.append_metrics({"update": update, "split": "train", "loss": 2 * loss})
            run.append_metrics({"update": update, "split": "valid", **figures})
            position = {"update": update, "tokens": 1000 * number, "seconds": 4.0 * number}
            run.save_checkpoint(update, {"w": torch.ones(2)}, {"position": position})
        if finished:
            run.finish({"w": torch.ones(2)}, {"updates": 10 * len(losses)})
    return path


@pytest.fixture
def runs():
    """Makes runs."""
    return SimpleNamespace(make=make)
