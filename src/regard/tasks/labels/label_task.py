"""Tasks that give a label to one text, to several, or to something else."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import several
from regard.metrics.labels import accuracy, by_label, macro_f1
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import likeliest_first
from regard.tasks.labels.word_parts import Speller, learn_tokenizer, reads_parts
from regard.tasks.oddities import CheckedExample
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.settings.recipe import Recipe
from regard.tasks.tables import Table, confusion_table, label_table
from regard.tasks.task import Answer
from regard.text import UNK_ID, Tokenizer, normalize
from regard.text.reading.records import Handling, member, read_records
from regard.text.reading.tables import Field
from regard.text.tokenizers.pieces import unknown_pieces
from regard.viewer import Prediction

# The logits of a batch, and the penalty that the head adds to the loss of each row, if any.
Logits: TypeAlias = tuple[Float[Tensor, "B K"], Float[Tensor, " B"] | None]


class TextField:
    """A text of an example, normalised; requests must hold it.

    Example:
        >>> TextField().read(" two  words")
        'two words'
    """

    is_input = True

    def read(self, cell: str) -> str:
        """The text of a cell."""
        return normalize(cell)


@dataclass(frozen=True, slots=True)
class CategoryField:
    """A category beside the texts; the task lists its values in ``learned``, from number 1."""

    is_input: ClassVar[bool] = True
    learned: str

    def read(self, cell: str) -> str:
        """The category of a cell."""
        return cell


class LabelField:
    """The label of an example, which requests lack; a subclass may make it of the cell.

    Example:
        >>> class Stars(LabelField):
        ...     def read(self, cell):
        ...         return "good" if float(cell) > 3 else "bad"
        >>> LabelField().read(" good"), Stars().read("4.5")
        ('good', 'good')
    """

    is_input = False

    def read(self, cell: str) -> str:
        """The label of a cell."""
        return cell.strip()


# The fields of an example, by name.
Fields: TypeAlias = Mapping[str, TextField | CategoryField | LabelField]


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and its label, None where it is to be predicted.

    Attributes:
        text: Normalised.
        label: The true one.
        aspect: Of the text, which the label is about; None where there is none.
        where: ``file:line`` it was read at.
    """

    text: str
    label: str | None
    aspect: str | None
    where: str


@dataclass(frozen=True, slots=True)
class LabelPrediction(Answer):
    """The most probable label of an example, and the probability of every label."""

    label: str
    probabilities: Mapping[str, float]

    def text(self) -> str:
        """The label and its probability."""
        return f"{self.label}\t{self.probabilities[self.label]:.4f}"

    def log_odds(self, label: str) -> float:
        """The logarithm of the odds of a label, bounded."""
        share = min(max(self.probabilities[label], 1e-7), 1 - 1e-7)
        return math.log(share / (1 - share))


@runtime_checkable
class Labelled(Protocol):
    """An example with a label."""

    @property
    def label(self) -> str | None:
        """The true label; None where it is to be predicted."""

    @property
    def where(self) -> str:
        """``file:line`` it was read at."""


LabelledT = TypeVar("LabelledT", bound=Labelled)


class LabelTask(OnePassTask[LabelledT, LabelPrediction]):
    """A task that gives each example one of the labels met in training.

    It declares its inputs: by default lines of a text and a label, by ``LabelledData``. A task
    says at least how to build its model, encode an example and compute the logits.

    Attributes:
        fields: The columns of a table and keys of a record, which are settings of ``[data]`` too.
        example: The class of the examples, with these fields and ``where``.
        labels: In order of their numbers.
    """

    unit: ClassVar[str] = "texts"
    fields: ClassVar[Fields] = {"text": TextField(), "label": LabelField()}
    example: ClassVar[Any] = LabelledText
    can_smooth: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1, "f1": 1}
    main_metric: ClassVar[str] = "accuracy"
    learned: ClassVar[tuple[str, ...]] = ("labels",)
    file: ClassVar[str] = "labels.json"
    labels: Annotated[list[str], several(2)]

    @abstractmethod
    def logits(self, model: nn.Module, batch: Batch) -> Logits:
        """The logits, and the head's term of the loss, where there is a head."""

    @classmethod
    def text_fields(cls) -> list[str]:
        """Names of the fields that are texts."""
        return [name for name, field in cls.fields.items() if isinstance(field, TextField)]

    @classmethod
    def texts(cls, example: LabelledT) -> tuple[str, ...]:
        """All texts of an example."""
        return tuple(getattr(example, name) for name in cls.text_fields())

    @classmethod
    def subject(cls, example: LabelledT) -> str:
        """The first text, whatever else is asked of it."""
        return cls.texts(example)[0]

    def unknown(self, example: LabelledT, encoded: Sequence[Sample]) -> list[str]:
        read = [sample.get(name, ()) for sample in encoded for name in ("ids", "other")]
        if not (any(UNK_ID in ids for ids in read) and isinstance(self.tokenizer, Tokenizer)):
            return []
        return unknown_pieces(self.tokenizer, self.texts(example))

    @classmethod
    def checked(cls, example: LabelledT) -> CheckedExample:
        """The texts, a category before the first, and the label."""
        first, *more_texts = cls.texts(example)
        for name, field in cls.fields.items():
            if isinstance(field, CategoryField) and (value := getattr(example, name)) is not None:
                first = f"{value}: {first}"
        return CheckedExample((first, *more_texts), (example.label or "",), example.where)

    @classmethod
    def columns(cls, data: object, *, inputs: bool = False) -> list[Field]:
        """The columns that ``[data]`` names; of inputs alone, all but the label's."""
        return [
            Field.of(data, name)
            for name, field in cls.fields.items()
            if getattr(data, name) and (field.is_input or not inputs)
        ]

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Sequence[LabelledT]:
        """The examples of one file, a table's header left out."""
        absent = dict.fromkeys(cls.example.__dataclass_fields__)
        every: list[LabelledT] = []
        for record, where in read_records(file, cls.columns(data), **handling):
            try:
                values = {name: cls.fields[name].read(cell) for name, cell in record.items()}
            except DataError as error:  # of a field of one's own
                raise DataError(f"{where}: {error}") from error
            every.append(cls.example(**{**absent, **values, "where": where}))
        return every

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        return self.columns(self.data, inputs=True)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> LabelledT:
        """Parse a line, whose texts have tabs between, or a JSON record; DataError without one."""
        names = self.text_fields()
        if isinstance(record, str):
            cells = record.split("\t", len(names) - 1)
            record = dict(zip_longest(names, cells, fillvalue=""))
        values: dict[str, str | None] = dict.fromkeys(self.example.__dataclass_fields__)
        for name, field in self.fields.items():
            value = member(record, Field.of(self.data, name)) if field.is_input else None
            if isinstance(field, TextField) and not (isinstance(value, str) and normalize(value)):
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
        """The task with the labels, categories and, if it has one, tokenizer of training.

        Where examples have several texts, each text is counted once.

        Raises:
            DataError: There are fewer than two labels, or nearly as many as examples.
            SettingError: Words are to be read from their parts, and text is not cut into words.
        """
        labels = learn_labels(example.label for example in examples)
        if len(labels) > max(100, len(examples) // 4):
            raise DataError(
                f"data.train must hold few different labels; got {len(labels):,} in "
                f"{len(examples):,} examples, such as {labels[0]!r}. "
                "Name the column that has labels: --set data.label=COLUMN."
            )
        tokenizer = None
        if recipe.tokenizer is not None:
            texts = [text for example in examples for text in cls.texts(example)]
            is_single = len(cls.text_fields()) == 1
            tokenizer = learn_tokenizer(recipe, texts if is_single else [*dict.fromkeys(texts)])
        categories = {
            field.learned: sorted({value for e in examples if (value := getattr(e, name))})
            for name, field in cls.fields.items()
            if isinstance(field, CategoryField)
        }
        return cls(recipe, tokenizer, labels=labels, **categories)

    @classmethod
    def load_tokenizer(cls, recipe: Recipe, folder: Path) -> Any:
        """The tokenizer, or the speller where words are read from parts; None without one."""
        is_speller = recipe.tokenizer is not None and reads_parts(recipe)
        return Speller.load(folder) if is_speller else super().load_tokenizer(recipe, folder)

    def describe(self) -> list[str]:
        more = " …" if len(self.labels) > 10 else ""
        lines = [f"{len(self.labels)} labels: {', '.join(self.labels[:10])}{more}"]
        for field in self.fields.values():
            if isinstance(field, CategoryField) and (values := getattr(self, field.learned)):
                lines.append(f"{len(values)} {field.learned}: {', '.join(values[:10])}")
        return [*super().describe(), *lines]

    def number(self, example: LabelledT) -> int:
        """The number of an example's label; −1 where it is not known.

        Raises:
            DataError: It was not met in training.
        """
        if example.label is None:
            return -1
        if example.label not in self.labels:
            raise DataError(
                f"{example.where}: label must be one met in training "
                f"({', '.join(self.labels[:20])}); got {example.label!r}. Correct it, or add texts "
                "that have it to data.train."
            )
        return self.labels.index(example.label)

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        logits, penalty = self.logits(model, batch)
        numbers = batch["label"]
        loss = F.cross_entropy(
            logits, numbers, ignore_index=-1, reduction="sum", label_smoothing=smoothing
        )
        is_labelled = numbers >= 0
        if penalty is not None:
            loss = loss + (penalty * is_labelled).sum()
        return loss, int(is_labelled.sum())

    def predict(self, model: nn.Module, batch: Batch) -> list[LabelPrediction]:
        rows = self.logits(model, batch)[0].softmax(-1).tolist()
        return [
            LabelPrediction(
                self.labels[row.index(max(row))], dict(zip(self.labels, row, strict=True))
            )
            for row in rows
        ]

    def score(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledT]
    ) -> dict[str, float]:
        """Accuracy, and F1 averaged over labels where ``metrics`` names it, in percent."""
        predicted, true = _labels(answers, examples)
        figures = {"accuracy": accuracy(predicted, true), "f1": macro_f1(predicted, true)}
        return {name: figures[name] for name in self.metrics}

    def example_score(self, answer: LabelPrediction, example: LabelledT) -> float:
        """The probability of the true label."""
        return answer.probabilities.get(example.label or "", 0.0)

    def distribution(
        self, answer: LabelPrediction, example: LabelledT
    ) -> tuple[Sequence[float], int] | None:
        if (number := self.number(example)) < 0:
            return None
        return list(answer.probabilities.values()), number

    def more_baselines(
        self, train: Sequence[LabelledT], examples: Sequence[LabelledT]
    ) -> Mapping[str, Sequence[str]]:
        """Labels predicted without a model, besides the most frequent one, by method."""
        return {}

    def baselines(
        self, train: Sequence[LabelledT], examples: Sequence[LabelledT]
    ) -> dict[str, list[LabelPrediction]]:
        """The most frequent label of training, and those of ``more_baselines``."""
        ((most, _),) = Counter(example.label or "" for example in train).most_common(1)
        labels = {f"always {most}": [most] * len(examples), **self.more_baselines(train, examples)}
        return {
            name: [LabelPrediction(label, {label: 1.0}) for label in predicted]
            for name, predicted in labels.items()
        }

    def tables(
        self, answers: Sequence[LabelPrediction], examples: Sequence[LabelledT]
    ) -> list[Table]:
        """Figures by label and by group, and the confusion matrix."""
        predicted, true = _labels(answers, examples)
        hits = {"accuracy": [float(a == b) for a, b in zip(predicted, true, strict=True)]}
        by_groups = self.tables_by_group(examples, hits)
        matrix = confusion_table(predicted, true)
        return [label_table(by_label(predicted, true)), *by_groups, matrix]

    def prediction(self, answer: LabelPrediction) -> Prediction:
        return Prediction(labels=likeliest_first(answer.probabilities.items()))

    def brief(self, example: LabelledT) -> str:
        """An example without its label, in a line."""
        text = self.subject(example)
        return text if len(text) <= 60 else f"{text[:57]}…"

    def show(self, example: LabelledT, answer: LabelPrediction) -> str:
        share = answer.probabilities[answer.label]
        return f"{self.brief(example)} → {answer.label} ({share:.2f}; right: {example.label})"


def learn_labels(labels: Iterable[str | None]) -> list[str]:
    """The labels of training in order of their numbers; DataError if there are fewer than two."""
    names = sorted({label for label in labels if label is not None})
    if len(names) < 2:
        raise DataError(
            f"data.train must hold at least two different labels; got {names}. "
            "Name the column that has them: --set data.label=COLUMN."
        )
    return names


def _labels(
    answers: Sequence[LabelPrediction], examples: Sequence[Labelled]
) -> tuple[list[str], list[str]]:
    return [answer.label for answer in answers], [example.label or "" for example in examples]
