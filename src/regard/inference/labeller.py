"""A trained job in use: examples in, answers out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import RunError
from regard.inference.once import Once
from regard.runs.run import Run
from regard.tasks import TASKS, Task, recipe_from_table
from regard.tasks.translation import batched

# Tokens of a batch, padding included.
_BATCH_TOKENS = 8192


class Labeller:
    """A model and its job, ready to answer.

    Args:
        model: Trained, or in training; put into evaluation mode at each use.
        job: The one it was trained for.
    """

    def __init__(self, model: nn.Module, job: Task[Any, Any, Any]) -> None:
        self.model, self.task = model, job

    @classmethod
    def load(cls, path: str | Path) -> "Labeller":
        """The model in a run folder.

        Raises:
            RunError: There is none, it is damaged, or it is of a task that has no job.
        """
        run = Run.open(path)
        recipe = recipe_from_table(run.recipe)
        job_class = TASKS[recipe.task].task
        if job_class is None:
            raise RunError(f"{path} must be a run of a job; it is one of {recipe.task}.")
        job = job_class.load(recipe, run.tokenizer_folder)
        model = job.build_model()
        run.fill(model)
        return cls(model, job)

    def predict(
        self, records: Sequence[Any], *, progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """The answer to each record, as ``Task.request`` takes them: a line of text, or a table.

        Args:
            records: What is asked.
            progress: Called after each batch with the number of records in it.
        """
        examples = [
            self.task.request(record, f"record {place}") for place, record in enumerate(records, 1)
        ]
        return self.answers(examples, progress=progress)

    @torch.no_grad()
    def answers(
        self, examples: Sequence[Any], *, progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """The answer to each example."""
        found, _ = self._run(examples, progress=progress, with_loss=False)
        return found

    @torch.no_grad()
    def answers_and_loss(self, examples: Sequence[Any]) -> tuple[list[Any], float]:
        """The answer to each example, and the mean loss over all that is predicted."""
        return self._run(examples, progress=None, with_loss=True)

    def _run(
        self,
        examples: Sequence[Any],
        *,
        progress: Callable[[int], None] | None,
        with_loss: bool,
    ) -> tuple[list[Any], float]:
        self.model.eval()
        encoded = self.task.encode(examples)
        found: list[Any] = [None] * len(encoded)
        total, terms = 0.0, 0
        for places in batched(self.task.lengths(encoded).tolist(), _BATCH_TOKENS):
            batch = self.task.collate([encoded[place] for place in places])
            model = Once(self.model) if with_loss else self.model
            for place, answer in zip(places, self.task.predict(model, batch), strict=True):
                found[place] = answer
            if with_loss:
                loss, count = self.task.loss(model, batch)
                total, terms = total + float(loss), terms + count
            if progress is not None:
                progress(len(places))
        return found, total / max(1, terms)
