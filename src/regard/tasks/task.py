"""What a task is: everything between lines of text and a model's tensors, and back again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.tasks.recipe import Recipe
from regard.text import BadLines

ExampleT = TypeVar("ExampleT")
EncodedT = TypeVar("EncodedT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows.

    Attributes:
        title: What they are of.
        columns: Names of the columns.
        rows: As many cells each; floats are figures in percent.
        is_matrix: Whether rows and columns are the same things, so that it can be drawn as a map.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]
    is_matrix: bool = False


@runtime_checkable
class Task(Protocol[ExampleT, EncodedT, AnswerT]):
    """A task whose answers are computed in one pass, not searched for: labels, tags, spans.

    One class a task, in a file of its own. An *example* is what a line or record of a file says; it
    may lack its answer. *Encoded*, it is ids. A batch goes through the model, and becomes a loss
    or an *answer* for each of its examples.

    Attributes:
        unit: What examples are called, in the plural.
        counted: What ``loss`` counts, in the plural: what the speed of training is told in.
        metrics: The figures of ``score``: 1 where more is better, -1 where less is.
        recipe: Whose settings hold.
    """

    unit: ClassVar[str]
    counted: str
    metrics: ClassVar[Mapping[str, int]]
    recipe: Recipe

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[ExampleT]:
        """The examples of ``train``, ``valid`` or ``test``; none if the recipe names no file."""

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[ExampleT]
    ) -> tuple[list[ExampleT], list[ExampleT]]:
        """The examples to train on and those to validate on, where the recipe names no others."""

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[ExampleT]) -> "Task[Any, Any, Any]":
        """The task with its vocabularies, from the training examples."""

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "Task[Any, Any, Any]":
        """The task with the vocabularies that ``save`` wrote."""

    def save(self, folder: Path) -> None:
        """Write the vocabularies."""

    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""

    def facts(self) -> list[str]:
        """What was learned from the text, in lines for people."""

    def request(self, record: str | Mapping[str, Any], where: str) -> ExampleT:
        """The example, without an answer, that a line of text or a JSON record asks about."""

    def encode(
        self,
        examples: Iterable[ExampleT],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedT]:
        """Ids of each example.

        Args:
            examples: What goes in.
            training: Whether it is to learn from: then examples may be left out, or cut up.
            too_long: Where what is left out or cut off for its length is counted.
        """

    def lengths(self, encoded: Sequence[EncodedT]) -> Int64[np.ndarray, " n"]:
        """What each costs of ``training.batch_tokens``."""

    def collate(
        self, encoded: Sequence[EncodedT], *, generator: torch.Generator | None = None
    ) -> Any:
        """A padded batch.

        Args:
            encoded: What goes into it.
            generator: In training only, where noise is drawn, such as what is masked.
        """

    def loss(
        self, model: nn.Module, batch: Any, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss summed over what is predicted, and how many that are."""

    def predict(self, model: nn.Module, batch: Any) -> list[AnswerT]:
        """What the model makes of each example."""

    def score(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> dict[str, float]:
        """The figures of ``metrics``."""

    def example_score(self, answer: AnswerT, example: ExampleT) -> float:
        """How right one answer is, from 0 to 1: what the best and the worst are chosen by."""

    def baselines(
        self, train: Sequence[ExampleT], examples: Sequence[ExampleT]
    ) -> dict[str, list[AnswerT]]:
        """Answers that take no model, by the name of how they are made."""

    def tables(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> list[Table]:
        """Where the figures come from: by label, by length, what was taken for what."""

    def fingerprint(self, example: ExampleT) -> str:
        """What tells this example from others."""

    def show(self, example: ExampleT, answer: AnswerT) -> str:
        """An example and its answer in a line for people."""
