"""Tasks that give a label to one text, to several, or to something else."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics.labels import accuracy, macro_f1
from regard.tasks.batches import Batch
from regard.tasks.checking import CheckedExample
from regard.tasks.drawing import likeliest_first
from regard.tasks.labels import (
    LabelPrediction,
    SavedLabels,
    certain,
    has_header,
    label_loss,
    label_predictions,
    learn_labels,
    most_frequent,
    number_of,
    tell_labels,
)
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.recipe import Recipe
from regard.tasks.tables import confusion_table, label_table
from regard.tasks.task import Table
from regard.text import BadLines, TokenizerConfig, normalize, train_tokenizer
from regard.text.reading.records import Handling, member, read_records
from regard.text.reading.tables import Field
from regard.viewer import Prediction

# The logits of a batch, and what the head adds to the loss of each of its rows, where there is one.
Logits: TypeAlias = tuple[Float[Tensor, "B K"], Float[Tensor, " B"] | None]


@dataclass(frozen=True, slots=True)
class Text:
    """A text of an example, normalised; requests must hold it."""

    is_input: ClassVar[bool] = True

    def read(self, cell: str) -> str:
        """The text of a cell."""
        return normalize(cell)


@dataclass(frozen=True, slots=True)
class Category:
    """A category beside the texts, such as an aspect, which examples have where ``[data]`` says."""

    is_input: ClassVar[bool] = True

    def read(self, cell: str) -> str:
        """The category of a cell."""
        return cell


@dataclass(frozen=True, slots=True)
class Label:
    """The label of an example, which requests lack."""

    is_input: ClassVar[bool] = False

    def read(self, cell: str) -> str:
        """The label of a cell."""
        return cell.strip()


# The fields of an example, by name.
Fields: TypeAlias = Mapping[str, Text | Category | Label]


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and its label.

    Attributes:
        text: Normalised.
        label: None where it is asked for.
        aspect: What of the text is asked about; None where nothing is.
        where: ``file:line`` it was read at.

    Example:
        >>> from regard.tasks.classification import Classification
        >>> Classification.checked(LabelledText("很甜", "good", "水果", "goods.tsv:3")).parts
        ('水果: 很甜',)
    """

    text: str
    label: str | None
    aspect: str | None
    where: str


@runtime_checkable
class Labelled(Protocol):
    """An example with a label."""

    @property
    def label(self) -> str | None:
        """None where it is asked for."""

    @property
    def where(self) -> str:
        """``file:line`` it was read at."""


LabelledT = TypeVar("LabelledT", bound=Labelled)


class LabelTask(OnePassTask[LabelledT, LabelPrediction]):
    """A task that gives each example one of the labels met in training.

    What it reads is declared: by default lines of a text and a label, by ``LabelledData``. A task
    says at least how it builds its model, how an example becomes a sample, and what the logits are.

    Attributes:
        fields: The columns of a table and keys of a record, which are settings of ``[data]`` too.
        example: The class of the examples, with these fields and ``where``.
        labels: In order of their numbers.
    """

    unit: ClassVar[str] = "texts"
    fields: ClassVar[Fields] = {"text": Text(), "label": Label()}
    example: ClassVar[Any] = LabelledText
    can_smooth: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1, "f1": 1}
    learned: ClassVar[tuple[str, ...]] = ("labels",)
    file: ClassVar[str] = "labels.json"
    labels: SavedLabels

    @abstractmethod
    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        """The logits, and what the head adds to the loss, where there is a head."""

    @classmethod
    def text_fields(cls) -> list[str]:
        """Names of the fields that are texts."""
        return [name for name, field in cls.fields.items() if isinstance(field, Text)]

    @classmethod
    def texts(cls, example: LabelledT) -> tuple[str, ...]:
        """All texts of an example."""
        return tuple(getattr(example, name) for name in cls.text_fields())

    @classmethod
    def subject(cls, example: LabelledT) -> str:
        """The first text, whatever else is asked of it."""
        return cls.texts(example)[0]

    @classmethod
    def checked(cls, example: LabelledT) -> CheckedExample:
        """The texts, a category before the first, and the label."""
        first, *others = cls.texts(example)
        for name, field in cls.fields.items():
            if isinstance(field, Category) and (value := getattr(example, name)) is not None:
                first = f"{value}: {first}"
        return CheckedExample((first, *others), (example.label or "",), example.where)

    @classmethod
    def columns(cls, data: object, *, inputs: bool = False) -> list[Field]:
        """The columns that ``[data]`` names; of inputs alone, all but the label's."""
        return [
            Field.of(data, name)
            for name, field in cls.fields.items()
            if getattr(data, name) and (field.is_input or not inputs)
        ]

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[LabelledT]:
        """The examples of a split; none if the recipe names no file."""
        return [
            example
            for file in recipe.files(split)
            for example in cls.read_file(file, recipe.data, bad_lines)
        ]

    @classmethod
    def read_file(cls, file: Path, data: Any, bad_lines: BadLines | None) -> Sequence[LabelledT]:
        """The examples of one file, a table's header left out."""
        absent = dict.fromkeys(cls.example.__dataclass_fields__)
        handling: Handling = {"on_bad_line": data.on_bad_line, "bad_lines": bad_lines}
        every: list[LabelledT] = []
        for record, where in read_records(file, cls.columns(data), **handling):
            values = {name: cls.fields[name].read(cell) for name, cell in record.items()}
            every.append(cls.example(**{**absent, **values, "where": where}))
        if len(cls.text_fields()) > 1:
            return every
        return every[has_header([(cls.subject(one), one.label or "") for one in every], file) :]

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The texts, and a category if the recipe has one."""
        return self.columns(self.data, inputs=True)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> LabelledT:
        """The example that a line or a JSON record asks about; tabs part the texts of a line.

        Raises:
            DataError: A text is missing.
        """
        names = self.text_fields()
        if isinstance(record, str):
            cells = record.split("\t", len(names) - 1)
            record = dict(zip_longest(names, cells, fillvalue=""))
        values: dict[str, str | None] = dict.fromkeys(self.example.__dataclass_fields__)
        for name, field in self.fields.items():
            value = member(record, Field.of(self.data, name)) if field.is_input else None
            if isinstance(field, Text) and not (isinstance(value, str) and normalize(value)):
                keys = f"a JSON record {' and '.join(names)}."
                cure = f" A line holds both texts and a tab between them, {keys}" * (len(names) > 1)
                raise DataError(
                    f"{where}: {name} must hold something to read; got {value!r}.{cure}"
                )
            if value is not None and not isinstance(value, str):
                raise DataError(f"{where}: {name} must be text; got {value!r}.")
            values[name] = value if value is None else field.read(value)
        made: LabelledT = self.example(**{**values, "where": where})
        return made

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[LabelledT]) -> "LabelTask[LabelledT]":
        """The task with the labels of the training examples, and the tokenizer if it has one.

        Of several texts each is counted once, however many examples have it.

        Raises:
            DataError: There are fewer than two labels.
        """
        labels = learn_labels(example.label for example in examples)
        tokenizer = None
        if recipe.tokenizer is not None:
            texts = dict.fromkeys(text for example in examples for text in cls.texts(example))
            tokenizer = train_tokenizer(texts, recipe.settings(TokenizerConfig))
        return cls(recipe, tokenizer, labels=labels)

    def facts(self) -> list[str]:
        """Describe the vocabulary and labels learned from the text, in lines."""
        return [*super().facts(), tell_labels(self.labels)]

    def number(self, example: LabelledT) -> int:
        """The number of an example's label; −1 where it is not known.

        Raises:
            DataError: It was not met in training.
        """
        return number_of(example.label, self.labels, example.where)

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        """The summed cross-entropy with the head's penalty, and how many labels are known."""
        logits, penalty = self.logits(model, batch)
        return label_loss(logits, batch["label"], smoothing=smoothing, penalty=penalty)

    def predict(self, model: nn.Module, batch: Batch) -> list[LabelPrediction]:
        """The label of each example."""
        return label_predictions(self.logits(model, batch)[0], self.labels)

    def score(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledT]
    ) -> dict[str, float]:
        """Accuracy, and F1 averaged over labels where it is asked for, in percent."""
        given, right = _compared(answers, examples)
        figures = {"accuracy": accuracy(given, right), "f1": macro_f1(given, right)}
        return {name: figures[name] for name in self.metrics}

    def example_score(self, answer: LabelPrediction, example: LabelledT) -> float:
        """The probability of the right label."""
        return answer.probabilities.get(example.label or "", 0.0)

    def more_baselines(
        self, train: Sequence[LabelledT], examples: Sequence[LabelledT]
    ) -> Mapping[str, Sequence[str]]:
        """Labels found without a model, besides the most frequent one, by how they are found."""
        return {}

    def baselines(
        self, train: Sequence[LabelledT], examples: Sequence[LabelledT]
    ) -> dict[str, list[LabelPrediction]]:
        """The most frequent label of training, and those of ``more_baselines``."""
        most = most_frequent(example.label for example in train)
        labels = {f"always {most}": [most] * len(examples), **self.more_baselines(train, examples)}
        return {name: [certain(label) for label in each] for name, each in labels.items()}

    def groupings(
        self, given: Sequence[str], right: Sequence[str], examples: Sequence[LabelledT]
    ) -> Iterator[Table]:
        """Tables between those by label and of confusions."""
        yield from ()

    def tables(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledT]
    ) -> list[Table]:
        """By label, the tables of ``groupings``, and the confusion matrix."""
        given, right = _compared(answers, examples)
        groups = self.groupings(given, right, examples)
        return [label_table(given, right), *groups, confusion_table(given, right)]

    def prediction(self, answer: LabelPrediction) -> Prediction:
        """The labels with their probabilities, the likeliest first."""
        return Prediction(labels=likeliest_first(answer.probabilities.items()))

    def brief(self, example: LabelledT) -> str:
        """An example without its label, in a line."""
        text = self.subject(example)
        return text if len(text) <= 60 else f"{text[:57]}…"

    def show(self, example: LabelledT, answer: LabelPrediction) -> str:
        """The example, its label by the model and by people."""
        share = answer.probabilities[answer.label]
        return f"{self.brief(example)} → {answer.label} ({share:.2f}; right: {example.label})"


def _compared(
    answers: Sequence[LabelPrediction], examples: Sequence[Labelled]
) -> tuple[list[str], list[str]]:
    """The labels given and the right ones."""
    return [answer.label for answer in answers], [example.label or "" for example in examples]
