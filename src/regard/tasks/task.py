"""Interface of tasks: everything between lines of text and a model's tensors, and back again."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.tasks.checking import CheckReport, check_examples
from regard.tasks.held_out import Parts
from regard.tasks.oddities import CheckedExample
from regard.tasks.settings.recipe import Recipe, RecipeTable
from regard.text import BadLines, Line
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
        """The answer as plain data, ready for JSON: the fields of a dataclass, numbers rounded."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


AnswerT = TypeVar("AnswerT", bound=Answer)


class Task(ABC, Generic[ExampleT, EncodedT, BatchT, AnswerT]):
    """Interface of a task: labels, tags, spans, or another text, learned and predicted.

    One class a task. An *example* is a parsed line or record of a file; it may lack its answer.
    *Encoded*, it is ids. A batch goes through the model, and becomes a loss or an *answer* for each
    of its examples.

    Answers are computed in one pass (``OnePassTask``), or written token by token
    (``SequenceTask``): a task is one of the two.

    Attributes:
        unit: Plural name of the examples.
        metrics: The figures of ``score``: 1 where more is better, -1 where less is.
        main_metric: The figure that chooses weights where ``training.metric`` is ``auto``.
        is_written: Whether answers are written token by token, not computed in one pass.
        are_texts: Whether examples are texts, which have words and a length.
        request_name: The name of a request in the usage of commands.
        recipe: The settings.

    Example:
        >>> from regard.tasks import TASKS
        >>> task = TASKS["tagging"].task
        >>> issubclass(task, Task), task.unit, dict(task.metrics), task.is_written
        (True, 'sentences', {'accuracy': 1, 'f1': 1}, False)
    """

    unit: ClassVar[str]
    metrics: ClassVar[Mapping[str, int]]
    main_metric: ClassVar[str] = "loss"
    is_written: ClassVar[bool] = False
    are_texts: ClassVar[bool] = True
    request_name: ClassVar[str] = "TEXT"
    recipe: Recipe

    @property
    @abstractmethod
    def loss_unit(self) -> str:
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
        """The examples of a training, the same ones at every call.

        Raises:
            DataError: The training text is not named, cannot be read, or is too short to hold some
                out.
        """

    @classmethod
    @abstractmethod
    def fingerprint(cls, example: ExampleT) -> str:
        """Return a string that identifies the example, for the run's data fingerprint."""

    @classmethod
    def resolved(
        cls, recipe: Recipe, saved: RecipeTable | None, examples: Sequence[ExampleT]
    ) -> Recipe:
        """The recipe with its open settings, of the run or by the text: by default as it is."""
        return recipe

    @staticmethod
    @abstractmethod
    def checked(example: ExampleT, /) -> CheckedExample:
        """Texts and labels of an example, to be checked before training."""

    @staticmethod
    def named_texts(example: ExampleT, /) -> dict[str, str]:
        """The texts of an example by the names of its fields, for people."""
        members = {
            field.name: getattr(example, field.name)
            for field in fields(example)  # type: ignore[arg-type]
            if field.name not in ("where", "target_where")
        }
        return {
            name: value if isinstance(value, str) else " ".join(value)
            for name, value in members.items()
            if value and isinstance(value, str | tuple)
        }

    @classmethod
    def check(cls, recipe: Recipe, *, examples: int = 3) -> CheckReport:
        """Check the text before training.

        Args:
            recipe: Names the files; unreadable lines are left out and counted if it says so.
            examples: How many to keep of each finding.

        Raises:
            DataError: There are no training examples, or a file cannot be read.
        """

        def read(split: str, bad_lines: BadLines) -> list[CheckedExample]:
            return [
                cls.checked(example) for example in cls.read(recipe, split, bad_lines=bad_lines)
            ]

        return check_examples(read, unit=cls.unit, examples=examples, are_texts=cls.are_texts)

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

    def initialise(self, model: nn.Module, samples: Sequence[EncodedT]) -> None:
        """Set the new weights that begin from the training samples: by default none does."""

    @abstractmethod
    def describe(self) -> list[str]:
        """Describe the vocabulary and labels learned from the text, in lines."""

    def describe_learned(self, model: nn.Module) -> list[str]:
        """Describe learned parameters that have a meaning of their own, in lines."""
        return []

    @abstractmethod
    def request(self, record: str | Mapping[str, JsonValue], where: str) -> ExampleT:
        """Parse a line of text or a JSON record into an example without an answer."""

    @abstractmethod
    def parse_line(self, line: Line, ending: str) -> ExampleT | None:
        """Parse a line of a file into an example to predict; None for an empty line.

        Args:
            line: The line.
            ending: Of the file's name, such as ``.jsonl``.

        Raises:
            DataError: It holds nothing to predict.
        """

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """Input columns of a table, with the answer's if it is to be scored; none of plain text."""
        return ()

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
            examples: With or without answers.
            training: Whether they are learned from: then some may be left out, or cut up.
            too_long: Counts the texts left out or cut off for their length.
        """

    @abstractmethod
    def encode_parts(
        self, train: Sequence[ExampleT], valid: Sequence[ExampleT], *, too_long: BadLines
    ) -> tuple[Sequence[EncodedT], Sequence[EncodedT]]:
        """Ids of the training and of the validation examples.

        Raises:
            DataError: No example is left to learn from, or one cannot be validated on.
        """

    def unknown(self, example: ExampleT, encoded: Sequence[EncodedT]) -> list[str]:
        """Characters or words of an example that its ids stand for no piece of; by default none."""
        return []

    def of_epoch(self, encoded: Sequence[EncodedT], *, seed: int, epoch: int) -> Sequence[EncodedT]:
        """Training samples of one epoch: by default the same in each."""
        return encoded

    @abstractmethod
    def lengths(
        self, encoded: Sequence[EncodedT]
    ) -> Int64[np.ndarray, " n"] | Int64[np.ndarray, "2 n"]:
        """Cost of each sample in ``training.batch_tokens``; of two sides, the larger counts."""

    @abstractmethod
    def collate(
        self, encoded: Sequence[EncodedT], *, generator: torch.Generator | None = None
    ) -> BatchT:
        """A padded batch; in training the generator draws noise, such as masked tokens."""

    def collate_part(
        self, encoded: Sequence[EncodedT], rows: slice, *, generator: torch.Generator
    ) -> BatchT:
        """Shard of a training batch for one of several processes.

        A task that draws noise and wants the same noise in a part as in the whole has its own.

        Args:
            encoded: The whole batch.
            rows: Its samples in the shard, one or more.
            generator: Draws the noise of the whole batch.
        """
        part = torch.Generator().manual_seed(generator.initial_seed() + rows.start)
        return self.collate(encoded[rows], generator=part)

    @abstractmethod
    def loss(
        self, model: nn.Module, batch: BatchT, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """The loss summed over its terms, and their number."""

    def backward(
        self, model: nn.Module, batch: BatchT, *, smoothing: float, scale: float = 1.0
    ) -> tuple[Float[Tensor, ""], int]:
        """Add the gradient of the loss times ``scale``, which keeps small ones in float16.

        Returns:
            The loss, detached, and the number of its terms.
        """
        loss, terms = self.loss(model, batch, smoothing=smoothing)
        (loss if scale == 1 else loss * scale).backward()  # type: ignore[no-untyped-call]
        return loss.detach(), terms

    @abstractmethod
    def score(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> dict[str, float]:
        """The figures of ``metrics``."""

    @abstractmethod
    def show(self, example: ExampleT, answer: AnswerT) -> str:
        """An example and its answer in a line for people."""


# A task of any types.
AnyTask: TypeAlias = Task[Any, Any, Any, Any]


def _plain(value: Any) -> JsonValue:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, list | tuple) else value
