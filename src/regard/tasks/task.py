"""Interface of tasks: everything between lines of text and a model's tensors, and back again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.tasks.checking import CheckReport
from regard.tasks.held_out import Parts
from regard.tasks.recipe import Recipe, RecipeTable
from regard.text import BadLines, Line, PairTokenizer
from regard.text.reading.tables import Field

ExampleT = TypeVar("ExampleT")
EncodedT = TypeVar("EncodedT")
BatchT = TypeVar("BatchT")


@runtime_checkable
class Answer(Protocol):
    """Prediction of a model for one example."""

    def text(self) -> str:
        """The answer in a line."""

    def to_dict(self) -> dict[str, JsonValue]:
        """The answer as plain data, ready for JSON."""


AnswerT = TypeVar("AnswerT", bound=Answer)


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows.

    Attributes:
        title: What they are of.
        columns: Names of the columns.
        rows: As many cells each; floats are figures in percent.
        is_matrix: Whether rows and columns are the same things, so that it can be drawn as a map.

    Example:
        >>> from regard.tasks.tables import confusion_table
        >>> table = confusion_table(["good", "bad", "bad"], ["good", "good", "bad"])
        >>> table.title, table.columns, table.is_matrix
        ('right label ↓ taken for →', ('', 'good', 'bad'), True)
        >>> table.rows
        (('good', 1, 1), ('bad', 0, 1))
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]
    is_matrix: bool = False


class Task(ABC, Generic[ExampleT, EncodedT, BatchT, AnswerT]):
    """Interface of a task: labels, tags, spans, or another text, learned and predicted.

    One class a task. An *example* is what a line or record of a file says; it may lack its answer.
    *Encoded*, it is ids. A batch goes through the model, and becomes a loss or an *answer* for each
    of its examples.

    Answers are computed in one pass (``OnePassTask``), or written token by token
    (``SequenceTask``): a task is one of the two.

    Attributes:
        unit: What examples are called, in the plural.
        metrics: The figures of ``score``: 1 where more is better, -1 where less is.
        is_written: Whether answers are written token by token, not computed in one pass.
        recipe: Whose settings hold.

    Example:
        >>> from regard.tasks import TASKS
        >>> task = TASKS["tagging"].task
        >>> issubclass(task, Task), task.unit, dict(task.metrics), task.is_written
        (True, 'sentences', {'accuracy': 1, 'f1': 1}, False)
    """

    unit: ClassVar[str]
    metrics: ClassVar[Mapping[str, int]]
    is_written: ClassVar[bool] = False
    recipe: Recipe

    @property
    @abstractmethod
    def counted(self) -> str:
        """Unit that ``loss`` counts, in the plural; the speed of training is given in it."""

    @classmethod
    @abstractmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[ExampleT]:
        """The examples of ``train``, ``valid`` or ``test``; none if the recipe names no file."""

    @classmethod
    @abstractmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[ExampleT]:
        """The examples of a training, the same ones whenever they are asked for.

        Raises:
            DataError: The training text is not named, cannot be read, or is too short to hold some
                out.
        """

    @classmethod
    @abstractmethod
    def fingerprint(cls, example: ExampleT) -> str:
        """Return a string that identifies the example, for the run's data fingerprint."""

    @classmethod
    @abstractmethod
    def settled(
        cls, recipe: Recipe, kept: RecipeTable | None, examples: Sequence[ExampleT]
    ) -> Recipe:
        """The recipe with what it leaves open: as the run keeps it, or as the text says."""

    @classmethod
    @abstractmethod
    def check(
        cls,
        recipe: Recipe,
        *,
        examples: int = 3,
        tokenizer: PairTokenizer | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> CheckReport:
        """Check the text before training.

        Args:
            recipe: Whose files are read; what cannot be is left out and counted if it says so.
            examples: How many to keep of each finding.
            tokenizer: Which pairs of sentences are asked for lengths and lost characters.
            progress: Called now and then with the number of steps done, where that takes long.

        Raises:
            DataError: There are no training examples, or a file cannot be read.
        """

    @classmethod
    @abstractmethod
    def learn(
        cls, recipe: Recipe, examples: Sequence[ExampleT]
    ) -> "Task[ExampleT, EncodedT, BatchT, AnswerT]":
        """The task with its vocabularies, from the training examples."""

    @classmethod
    @abstractmethod
    def load(cls, recipe: Recipe, folder: Path) -> "Task[ExampleT, EncodedT, BatchT, AnswerT]":
        """The task with the vocabularies that ``save`` wrote."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the vocabularies."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """The recipe's model with new weights."""

    @abstractmethod
    def facts(self) -> list[str]:
        """Describe the vocabulary and labels learned from the text, in lines."""

    def describe_learned(self, model: nn.Module) -> list[str]:
        """Describe learned parameters that have a meaning of their own, in lines."""
        return []

    @abstractmethod
    def request(self, record: str | Mapping[str, JsonValue], where: str) -> ExampleT:
        """The example, without an answer, that a line of text or a JSON record asks about."""

    @abstractmethod
    def asked(self, line: Line, ending: str) -> ExampleT | None:
        """Parse a line of a file into an example to predict; None for an empty line.

        Args:
            line: The line.
            ending: Of the file's name, such as ``.jsonl``.

        Raises:
            DataError: It asks nothing that can be answered.
        """

    @abstractmethod
    def encode(
        self,
        examples: Iterable[ExampleT],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> Sequence[EncodedT]:
        """Ids of each example.

        Args:
            examples: What goes in.
            training: Whether it is to learn from: then examples may be left out, or cut up.
            too_long: Where what is left out or cut off for its length is counted.
        """

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """Input columns of a table; none if its lines are read as they are.

        Args:
            with_answers: Whether it says an answer, too, which is to be scored.
        """
        return ()

    @abstractmethod
    def encode_parts(
        self,
        train: Sequence[ExampleT],
        valid: Sequence[ExampleT],
        *,
        too_long: BadLines,
    ) -> tuple[Sequence[EncodedT], Sequence[EncodedT]]:
        """Ids of what is learned from, and of what is validated on.

        Args:
            train: The examples of training.
            valid: Those of validation.
            too_long: Where what is left out or cut off for its length is counted.

        Raises:
            DataError: No example is left to learn from, or one cannot be validated on.
        """

    @abstractmethod
    def of_epoch(self, encoded: Sequence[EncodedT], *, seed: int, epoch: int) -> Sequence[EncodedT]:
        """Training samples of one epoch: the same, or tokenized anew."""

    @abstractmethod
    def lengths(
        self, encoded: Sequence[EncodedT]
    ) -> Int64[np.ndarray, " n"] | Int64[np.ndarray, "2 n"]:
        """Cost of each sample in ``training.batch_tokens``; of two sides, the larger counts."""

    @abstractmethod
    def collate(
        self, encoded: Sequence[EncodedT], *, generator: torch.Generator | None = None
    ) -> BatchT:
        """A padded batch.

        Args:
            encoded: What goes into it.
            generator: In training only, where noise is drawn, such as what is masked.
        """

    def collate_part(
        self, encoded: Sequence[EncodedT], rows: slice, *, generator: torch.Generator
    ) -> BatchT:
        """Shard of a training batch for one of several processes.

        A task that draws noise and wants the same noise in a part as in the whole has its own.

        Args:
            encoded: What goes into the whole batch.
            rows: Which of it is wanted, one or more.
            generator: Draws the noise of the whole batch.
        """
        part = torch.Generator().manual_seed(generator.initial_seed() + rows.start)
        return self.collate(encoded[rows], generator=part)

    @abstractmethod
    def loss(
        self, model: nn.Module, batch: BatchT, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss summed over what is predicted, and how many that are."""

    @abstractmethod
    def backward(
        self, model: nn.Module, batch: BatchT, *, smoothing: float, scale: float = 1.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss, detached, and its terms; its gradient, times ``scale``, is added.

        Args:
            model: Whose parameters have the gradients.
            batch: On the model's device.
            smoothing: Of labels.
            scale: So that float16 can hold small gradients.
        """

    @abstractmethod
    def score(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> dict[str, float]:
        """The figures of ``metrics``."""

    @abstractmethod
    def show(self, example: ExampleT, answer: AnswerT) -> str:
        """An example and its answer in a line for people."""


# A task of which nothing more is known.
AnyTask: TypeAlias = Task[Any, Any, Any, Any]
