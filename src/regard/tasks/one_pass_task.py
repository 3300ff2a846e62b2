"""Tasks whose answers are computed in one pass, not searched for: labels, tags, spans."""

import typing
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, get_type_hints

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.devices import device_of, moved
from regard.errors import DataError, SettingError
from regard.progress import progress
from regard.tasks.batches import Sample, collate
from regard.tasks.drawing import Drawing
from regard.tasks.held_out import (
    LEAST_FOR_TEST,
    Parts,
    evenly,
    hold_out_texts,
    split_examples,
    valid_share,
)
from regard.tasks.overlap import Overlap
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import Table, by_group
from regard.tasks.task import AnswerT, ExampleT, Task
from regard.text import BadLines, Line, TokenizerConfig, load_tokenizer
from regard.text.files import read_saved, write_plain
from regard.text.reading.lines import readable
from regard.text.reading.records import Handling, object_of, record_in
from regard.viewer import Prediction

# A sum over the terms of a batch, and their number.
Loss: TypeAlias = tuple[Float[Tensor, ""], int]
# Longest sample of which each token is left out in turn, and how many such samples are in a batch.
_MOST_LEFT_OUT, _ROWS = 256, 32
# mypy knows TypedDict as a form of the language, not as a function that makes a class.
_table_of: Callable[[str, Mapping[str, Any]], type[dict[str, Any]]] = vars(typing)["TypedDict"]


class OnePassTask(Task[ExampleT, Any, Any, AnswerT]):
    """A task whose answers are computed in one pass, not searched for: labels, tags, spans.

    It declares the parts learned from the training text, which are saved and loaded here, and how
    an example becomes a ``Sample``, ids and numbers by name, which are padded to a ``Batch`` here;
    a task may have classes of its own in their place.

    Args:
        recipe: The settings.
        tokenizer: Learned from the training text; None where the task cuts none.
        learned: All that ``learned`` names.

    Attributes:
        least_for_test: Fewer different texts than these hold none out to test on.
        without_overlap: Attribute of the examples that training and validation must not share,
            and its plural name; None holds out single examples.
        learned: Attributes that are learned besides the tokenizer: plain data, of the types that
            the class annotates them with.
        file: Name of their file.
        can_smooth: Whether its labels can be smoothed.
        padding: Fillers of a sample's lists, by name, where they are not 0.
        overlap: Words of training and how rare they are, where ``data.shared_words`` is set.

    Example:
        >>> class Spelling(OnePassTask[str, str]):
        ...     unit = "words"
        >>> train, valid = Spelling.hold_out(Recipe(), [f"word {n}" for n in range(10)])
        >>> len(train), valid, Spelling.is_written
        (9, ['word 0'], False)
    """

    least_for_test: ClassVar[int] = LEAST_FOR_TEST
    without_overlap: ClassVar[tuple[str, str] | None] = None
    learned: ClassVar[tuple[str, ...]] = ()
    file: ClassVar[str] = "learned.json"
    can_smooth: ClassVar[bool] = False
    padding: ClassVar[Mapping[str, int]] = {}
    overlap: Overlap | None = None
    data: Any
    tokenizer: Any

    def __init__(self, recipe: Recipe, tokenizer: Any = None, **learned: object) -> None:
        self.recipe, self.data, self.tokenizer = recipe, recipe.data, tokenizer
        for name in self.learned:
            setattr(self, name, learned[name])

    @property
    def loss_unit(self) -> str:
        return self.unit

    @classmethod
    def subject(cls, example: ExampleT, /) -> str:
        """The text that an example is about, others may be about too: its first."""
        return cls.checked(example).parts[0]

    @abstractmethod
    def predict(self, model: nn.Module, batch: Any) -> list[AnswerT]:
        """Predict each example."""

    @abstractmethod
    def example_score(self, answer: AnswerT, example: ExampleT) -> float:
        """The quality of one answer, from 0 to 1; reports choose the best and the worst by it."""

    def distribution(
        self, answer: AnswerT, example: ExampleT
    ) -> tuple[Sequence[float], int] | None:
        """The probabilities that an answer chooses by, and the index of the true one.

        A classifier is calibrated by them; None where there are none, or nothing is known to be
        true.
        """
        return None

    @abstractmethod
    def baselines(
        self, train: Sequence[ExampleT], examples: Sequence[ExampleT]
    ) -> dict[str, list[AnswerT]]:
        """Answers without a model, by the name of their method."""

    @abstractmethod
    def tables(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> list[Table]:
        """Tables of the figures by label, by length, and of confusions."""

    def groups(self, example: ExampleT) -> Mapping[str, str]:
        """Groups of an example that figures are listed by, by the titles of their tables."""
        return {}

    def tables_by_group(
        self, examples: Sequence[ExampleT], scores: Mapping[str, Sequence[float]]
    ) -> list[Table]:
        """Tables of the scores by ``groups``."""
        groups = [self.groups(example) for example in examples]
        titles = groups[0] if groups else ()
        return [by_group(title, [group[title] for group in groups], scores) for title in titles]

    @abstractmethod
    def batch_loss(self, model: nn.Module, batch: Any, smoothing: float) -> Loss:
        """The loss summed over its terms, and their number."""

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[ExampleT]:
        data: Any = recipe.data
        handling = Handling(on_bad_line=data.on_bad_line, bad_lines=bad_lines)
        files = recipe.files(split)
        return [example for file in files for example in cls.read_file(file, data, handling)]

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[ExampleT]:
        """The examples of one file, for ``read``."""
        raise NotImplementedError(f"{cls.__name__} must have read_file, or read.")

    @classmethod
    def load_tokenizer(cls, recipe: Recipe, folder: Path) -> Any:
        """The tokenizer that was saved; None where the recipe has none."""
        return None if recipe.tokenizer is None else load_tokenizer(folder)

    @classmethod
    def load_learned(cls, folder: Path) -> dict[str, Any]:
        """The values of ``learned`` that ``save`` wrote; RunError if the file is damaged."""
        hints = get_type_hints(cls, include_extras=True)
        kind = _table_of(cls.__name__, {name: hints[name] for name in cls.learned})
        table = read_saved(folder, cls.file, kind) if cls.learned else {}
        return {name: table[name] for name in cls.learned}

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "OnePassTask[ExampleT, AnswerT]":
        """The task of the files that ``save`` wrote; RunError if a file is missing or damaged."""
        tokenizer = cls.load_tokenizer(recipe, folder / "text")
        task = cls(recipe, tokenizer, **cls.load_learned(folder))
        if getattr(recipe.data, "shared_words", False):
            task.overlap = Overlap.load(folder)
        return task

    def save(self, folder: Path) -> None:
        if self.tokenizer is not None:
            self.tokenizer.save(folder / "text")
        if self.learned:
            write_plain(folder, {name: getattr(self, name) for name in self.learned}, self.file)
        if self.overlap is not None:
            self.overlap.save(folder)

    def describe(self) -> list[str]:
        if self.tokenizer is None:
            return []
        kind = self.recipe.settings(TokenizerConfig).type
        return [f"{kind} tokenizer: {self.tokenizer.vocab_size:,} pieces"]

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[ExampleT]
    ) -> tuple[list[ExampleT], list[ExampleT]]:
        """The examples to train on and those to validate on, where the recipe names no others.

        These are a few spread evenly over the text, and share nothing of ``without_overlap``.

        Raises:
            DataError: There are fewer than ten.
        """
        share = valid_share(recipe)
        if cls.without_overlap is not None:
            name, unit = cls.without_overlap
            return hold_out_texts(examples, attrgetter(name), unit=unit, share=share)
        indices = set(evenly(range(len(examples)), unit=cls.unit, share=share))
        held = [example for index, example in enumerate(examples) if index in indices]
        return [example for index, example in enumerate(examples) if index not in indices], held

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[ExampleT]:
        """The examples of a training: of its files, or held out of the training ones."""
        return split_examples(
            recipe,
            lambda split: cls.read(recipe, split, bad_lines=bad_lines),
            cls.subject,
            lambda examples: cls.hold_out(recipe, examples),
            least=cls.least_for_test,
        )

    @classmethod
    def fingerprint(cls, example: ExampleT) -> str:
        """All fields of an example."""
        # Run folders keep it: with another name of class or field, no training begun goes on.
        return repr(example)

    def parse_line(self, line: Line, ending: str) -> ExampleT | None:
        """Parse a line: text, or an object as in JSONL."""
        text = readable(line)
        if not text.strip():
            return None
        record = object_of(text, line.where) if ending == ".jsonl" else record_in(text)
        return self.request(record, line.where)

    def encode_one(self, example: ExampleT, too_long: BadLines) -> Any:
        """The sample of one example; ``too_long`` counts texts that are cut."""
        raise NotImplementedError(f"{type(self).__name__} must have encode_one, or samples.")

    def samples(
        self, examples: Sequence[ExampleT], too_long: BadLines, *, training: bool
    ) -> Iterable[Any]:
        """The samples of examples, by default one each; in training some may be left out."""
        return (self.encode_one(example, too_long) for example in examples)

    def encode(
        self,
        examples: Iterable[ExampleT],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> Sequence[Any]:
        """The samples of examples; DataError of a label that training lacks, or of no text."""
        counts = BadLines() if too_long is None else too_long
        return list(self.samples(list(examples), counts, training=training))

    def encode_parts(
        self, train: Sequence[ExampleT], valid: Sequence[ExampleT], *, too_long: BadLines
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        with progress("encoding"):
            encoded = self.encode(train, training=True, too_long=too_long)
        if not encoded:
            reasons = [message for messages in too_long.examples.values() for message in messages]
            cure = reasons[0] if reasons else "Raise data.max_length."
            raise DataError(
                f"data.train must hold {self.unit} that are not too long; got none. {cure}"
            )
        return encoded, self.encode(valid)

    def length(self, sample: Any) -> int:
        """Cost of a sample in ``training.batch_tokens``: its ids, or 1 where it has none."""
        return len(sample["ids"]) if "ids" in sample else 1

    def lengths(self, encoded: Sequence[Any]) -> Int64[np.ndarray, " n"]:
        return np.array([self.length(sample) for sample in encoded], dtype=np.int64)

    def collate(self, encoded: Sequence[Any], *, generator: torch.Generator | None = None) -> Any:
        batch = collate(encoded, self.padding)
        return batch if generator is None else self.noisy(batch, generator)

    def noisy(self, batch: Any, generator: torch.Generator) -> Any:
        """The batch with the noise of training drawn; by default there is none."""
        return batch

    def loss(self, model: nn.Module, batch: Any, *, smoothing: float = 0.0) -> Loss:
        """The loss of ``batch_loss``; SettingError if labels are smoothed where none can be."""
        if smoothing and not self.can_smooth:
            raise SettingError(
                f"training.label_smoothing must be 0 for {self.recipe.task}; got {smoothing}. "
                "Set it to 0."
            )
        return self.batch_loss(model, batch, smoothing)

    def prediction(self, answer: AnswerT) -> Prediction | None:
        """The answer's labels with their probabilities, for a page; None shows its text alone."""
        return None

    def draw(self, model: nn.Module, example: ExampleT, encoded: Any, answer: AnswerT) -> Drawing:
        """The texts and tokens of an example, its prediction, and the attention that is shown.

        By default the words of the request and ``answer.text()``, and the attention between the
        words where there is a query and a key for each.

        Raises:
            DataError: The text is too long to be read at once.
        """
        return Drawing(prediction=self.prediction(answer))

    def leave_one_out(
        self,
        model: nn.Module,
        sample: Sample,
        answer: AnswerT,
        score: Callable[[AnswerT], float],
        *,
        without: Callable[[Sample, int], Sample] | None = None,
    ) -> tuple[float, ...]:
        """The fall of the score of a sample's answer without each of its ``ids``.

        Nothing for a long text; 0 for a single token. ``without`` gives the sample without an id,
        by default by ``without_id``.
        """
        count = len(sample["ids"])
        if count > _MOST_LEFT_OUT:
            return ()
        whole, losses = score(answer), list[float]()
        for first in range(0, count, _ROWS):
            indices = range(first, min(count, first + _ROWS))
            batch = self.collate([(without or without_id)(sample, index) for index in indices])
            answers = self.predict(model, moved(batch, device_of(model)))
            losses += [whole - score(ablated) for ablated in answers]
        return tuple(losses)


def without_id(sample: Sample, index: int) -> Sample:
    """A sample without one of its ids and its features; with the only id, the sample."""
    count = len(sample["ids"])
    if count == 1:
        return sample

    def cut(value: Any) -> Any:
        if isinstance(value, Tensor) and value.ndim and len(value) == count:
            return torch.cat([value[:index], value[index + 1 :]])
        is_list = isinstance(value, list) and len(value) == count
        return [*value[:index], *value[index + 1 :]] if is_list else value

    return {name: cut(value) for name, value in sample.items()}
