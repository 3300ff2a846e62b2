"""Training a job: what the loop needs of examples that are answered in one pass."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import DataError
from regard.inference.labeller import Labeller
from regard.tasks import TASKS, Recipe
from regard.text import BadLines, Batches
from regard.training.encoded import EncodedText
from regard.training.settings import TrainingConfig

# Outputs shown at each validation.
_SAMPLES = 3


class JobTraining:
    """Batches, validation and samples of a job.

    Args:
        recipe: Whose settings hold.
        job: With its vocabularies.
        train: Examples to learn from.
        valid: Examples to validate on.
        config: The training settings.
        too_long: Where examples beyond the maximum length are counted.
        encoded: Not used: what a job encodes is kept nowhere.
    """

    def __init__(
        self,
        recipe: Recipe,
        job: Any,
        train: Sequence[Any],
        valid: Sequence[Any],
        config: TrainingConfig,
        too_long: BadLines | None = None,
        encoded: EncodedText | None = None,
    ) -> None:
        self.recipe, self.task, self.config = recipe, job, config
        self.unit, self.counted = job.unit, job.counted
        too_long = BadLines() if too_long is None else too_long
        self.corpus = job.encode(train, training=True, too_long=too_long)
        if not self.corpus:
            reasons = [message for found in too_long.examples.values() for message in found]
            cure = reasons[0] if reasons else "Raise data.max_length."
            raise DataError(
                f"data.train must hold {job.unit} that are not too long; got none. {cure}"
            )
        self.valid = list(valid)
        job.encode(self.valid)  # what cannot be validated on is an error before training starts
        self.num_examples = len(train)

    @staticmethod
    def _job(recipe: Recipe) -> Any:
        return TASKS[recipe.task].task

    @classmethod
    def fingerprint(cls, example: Any) -> str:
        """What tells an example from others."""
        return repr(example)

    @classmethod
    def settled(
        cls, recipe: Recipe, kept: Mapping[str, Any] | None, examples: Sequence[Any]
    ) -> Recipe:
        """The recipe as it is: a job leaves nothing open."""
        return recipe

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[Any]) -> Any:
        """The job with its vocabularies, from the training examples."""
        return cls._job(recipe).learn(recipe, examples)

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> Any:
        """The job with the vocabularies that a run keeps."""
        return cls._job(recipe).load(recipe, folder)

    @property
    def model_dim(self) -> int:
        """The width that the paper's learning rate depends on."""
        model = self.recipe.model
        return int(getattr(model, "model_dim", 0) or getattr(model, "hidden_dim", 0) or 512)

    @property
    def num_samples(self) -> int:
        """What an epoch is made of: examples, or windows of them."""
        return len(self.corpus)

    @property
    def metrics(self) -> Mapping[str, int]:
        """What ``training.metric`` may name."""
        return {"loss": -1, **self.task.metrics}

    def begin_epoch(self, epoch: int) -> None:
        """Nothing to prepare."""

    def batches(self, epoch: int, cursor: int) -> Iterator[tuple[Any, int]]:
        """The rest of an epoch's batches, each with the cursor after it.

        Noise is drawn from seed, epoch and cursor, so that a run that goes on draws the same.
        """
        lengths = self.task.lengths(self.corpus)
        plans = Batches(
            lengths, lengths, max_tokens=self.config.batch_tokens, seed=self.config.seed
        )
        for plan in plans.epoch(epoch, cursor):
            seeds = np.random.SeedSequence([self.config.seed, epoch, plan.cursor])
            generator = torch.Generator().manual_seed(int(seeds.generate_state(1)[0]))
            chosen = [self.corpus[index] for index in plan.indices]
            yield self.task.collate(chosen, generator=generator), plan.cursor

    def backward(self, model: nn.Module, batch: Any, *, smoothing: float) -> tuple[Tensor, int]:
        """The loss summed over what is predicted, and how many that are."""
        loss, terms = self.task.loss(model, batch, smoothing=smoothing)
        loss.backward()
        return loss.detach(), terms

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """The mean loss over the validation examples, and the job's figures."""
        labeller = self.predictor(model)
        answers, loss = labeller.answers_and_loss(self.valid)
        return {"loss": loss, **self.task.score(answers, self.valid)}

    def samples(self, model: nn.Module) -> list[str]:
        """A few validation examples and what the model makes of them."""
        step = max(1, len(self.valid) // _SAMPLES)
        examples = self.valid[::step][:_SAMPLES]
        answers = self.predictor(model).answers(examples)
        return [
            self.task.show(example, answer)
            for example, answer in zip(examples, answers, strict=True)
        ]

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights.

        The shortest example is tried, so that settings which do not go together are an error before
        anything is written.
        """
        model: nn.Module = self.task.build_model()
        shortest = int(self.task.lengths(self.corpus).argmin())
        with torch.no_grad():
            batch = self.task.collate([self.corpus[shortest]])
            self.task.loss(model.eval(), batch, smoothing=self.config.label_smoothing)
        return model.train()

    def predictor(self, model: nn.Module) -> Labeller:
        """The model in use."""
        return Labeller(model, self.task)

    def facts(self) -> list[str]:
        """What was learned from the text, in lines for people."""
        facts: list[str] = self.task.facts()
        return facts
