"""A recipe: everything that a training depends on, as it is saved with the run."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, TypedDict, TypeVar

from regard.config import JsonValue, as_table
from regard.errors import DataError, SettingError
from regard.fields import Count, Natural, check_fields
from regard.tasks.settings.decoding import DecodingConfig
from regard.text import TokenizerConfig
from regard.text.reading.records import OnBadLine
from regard.text.reading.sources import shards
from regard.text.reading.tables import Column

# Splits of the built-in phrasebook that training takes, by the value of ``data.train``.
PHRASEBOOKS: dict[str, tuple[str, ...]] = {
    "phrasebook": ("train",),
    "phrasebook+everyday": ("train", "everyday"),
}
SettingsT = TypeVar("SettingsT")
# The value of ``data.test`` where it is a part of the training text.
HELD_OUT = "held out"


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitFiles:
    """The files of each part of the examples.

    Attributes:
        train: Training files.
        valid: The same, for validation; empty takes a few examples from the training ones.
        test: The same, for ``evaluate``; or ``held out`` of the training ones.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range; or two
            columns are one.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()

    # The settings that name columns, each another one; `evaluate --set` takes them.
    column_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        columns = {name: getattr(self, name) for name in self.column_names}
        numbers = [column for column in columns.values() if column]  # 0: it is not there
        if len(set(numbers)) < len(numbers):
            (*names, name), (*initial, last) = columns, map(str, columns.values())
            raise SettingError(
                f"{', '.join(names)} and {name} must be different columns; got "
                f"{', '.join(initial)} and {last}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFiles(SplitFiles):
    """The files of a task's examples.

    Attributes:
        on_bad_line: Whether a line, or an example, that cannot be used is an ``error``, or is left
            out (``skip``).
    """

    on_bad_line: OnBadLine = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceData(DataFiles):
    """Files of sequence-to-sequence tasks.

    Attributes:
        source_language: Code of the source's language (``zh``), for metrics and pages; None guesses
            it.
        target_language: Code of the target's language (``en``), likewise.
        max_length: Longest source, in tokens, that is read at once.
        source_end: Whether the model reads an end token after the source. Without it every
            position that can be looked at is a piece of the sentence, which suits alignments.
    """

    source_language: str | None = None
    target_language: str | None = None
    max_length: Count = 256
    source_end: bool = True

    retired: ClassVar[Mapping[str, JsonValue]] = {"on_long": "skip"}
    unneeded: ClassVar[Sequence[str]] = ("on_long",)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(SequenceData):
    """The files of sentence pairs, and their columns and languages.

    Attributes:
        train: One TSV, CSV or JSONL file or table (Parquet, Arrow), or two of lines (source,
            target), or ``phrasebook``, or ``phrasebook+everyday``. Each may be a folder or a
            pattern (``shards/*.tsv.gz``).
        valid: The same, for validation; empty takes a few pairs from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        max_length: Longest sentence, in tokens, that training takes.
        columns: Columns of source, target and further references: numbers from 1, or names in the
            header, which are keys in JSONL and tables: ``translation.en`` for "en" in an object.

    Example:
        >>> from regard.config import build
        >>> build(DataConfig, {"train": ["train.zh", "train.en"]}, where="data").train
        ('train.zh', 'train.en')
        >>> build(DataConfig, {"train": "phrasebook", "on_bad_line": "cut"}, where="data")
        Traceback (most recent call last):
        regard.errors.SettingError: data.on_bad_line must be one of error, skip; got 'cut'.
    """

    columns: tuple[Column, ...] = ()

    column_names: ClassVar[tuple[str, ...]] = ("columns",)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentData(SequenceData):
    """The files of documents with their questions, answers or summaries.

    Attributes:
        train: TSV or CSV files, or JSONL or tables (Parquet, Arrow) with "document" (or "context"),
            perhaps "question", and "answers" (a text or a list; or "answer", "summary",
            "summaries").
        document: Column of the document in a table: its number from 1, or its name in the header;
            a name is its key in JSONL, Parquet and Arrow, too.
        question: Column of the question; 0: there is none, and a summary is wanted.
        answer: Column of the answer or the summary.
        sentences: Read only so many sentences of each document: those that share the rarest words
            with the question, the best one first; without a question, the first ones. None reads
            all, in their order.
        shortened: Which documents ``sentences`` shortens: ``all``; or only those ``asked`` about,
            and those to summarise are read whole.
        max_length: Longest source, in tokens, question and all; the rest is cut off.
    """

    document: Column = 1
    question: Natural | str = 0
    answer: Column = 2
    sentences: Count | None = None
    shortened: Literal["all", "asked"] = "all"
    max_length: Count = 2048

    column_names: ClassVar[tuple[str, ...]] = ("document", "question", "answer")


class RecipeTable(TypedDict, total=False):
    """A recipe as TOML holds it.

    Attributes:
        task: Its name, such as ``translation``.
        data: Files of text.
        tokenizer: Cuts the text into pieces.
        model: The architecture as ``type``, and its settings.
        head: On the model.
        training: Of the model.
        decoding: Search for outputs.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table: RecipeTable = {"task": "translation", "model": {"num_heads": 4}}
        >>> whole: RecipeTable = recipe_from_table(table).table()
        >>> whole["model"]["num_heads"], whole["model"]["model_dim"], whole["data"]["max_length"]
        (4, 512, 256)
    """

    task: str
    data: dict[str, JsonValue]
    tokenizer: dict[str, JsonValue]
    model: dict[str, JsonValue]
    head: dict[str, JsonValue]
    training: dict[str, JsonValue]
    decoding: dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that a training depends on.

    Attributes:
        task: A name in ``TASKS``.
        data: Of the class that the task reads.
        tokenizer: None where a task cuts no text.
        model_type: Name of the architecture.
        model: Its settings.
        head: Settings of its head, such as how a text becomes one vector; None without one.
        training: The ``[training]`` table, which training reads.
        decoding: Of the search; None without one.
        folder: Base of relative paths in ``data``.
        name: Name of its file without the ending; None of one without a file.
        given: Settings of ``tokenizer``, ``model`` and ``head`` in the recipe's text, without
            defaults; None where it was not read from any, so that every setting counts as given.
    """

    task: str = "translation"
    data: SplitFiles = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig | None = field(default_factory=TokenizerConfig)
    model_type: str = "transformer"
    model: object = None
    head: object = None
    training: Mapping[str, JsonValue] = field(default_factory=dict)
    decoding: DecodingConfig | None = field(default_factory=DecodingConfig)
    folder: Path = field(default_factory=Path)
    name: str | None = field(default=None, compare=False)
    given: Mapping[str, Mapping[str, JsonValue]] | None = field(
        default=None, compare=False, repr=False
    )

    def files(self, split: str) -> list[Path]:
        """The files of ``train``, ``valid`` or ``test``, in the recipe's folder; none if unset.

        Raises:
            DataError: A folder or pattern matches none, one is missing, or is a device.
        """
        return [file for files in self.sharded(split) for file in files]

    def sharded(self, split: str) -> list[list[Path]]:
        """The files of each name in the recipe, as ``files``: see ``shards``."""
        sharded_files = [shards(path, split) for path in self.named(split)]
        for file in (file for files in sharded_files for file in files):
            if file.is_char_device() or file.is_block_device():
                raise DataError(f"data.{split} must name files of text; got the device {file}.")
        return sharded_files

    def named(self, split: str) -> list[Path]:
        """Paths named by ``train``, ``valid`` or ``test``: files, folders of them, and patterns."""
        names = getattr(self.data, split)
        if names == HELD_OUT:
            return []
        paths = [names] if isinstance(names, str) else names
        return [self.folder / name for name in paths if name]

    @property
    def encoding(self) -> str | None:
        """Encoding of text that is not UTF-8; None recognises it."""
        name = self.training.get("encoding")
        return None if name is None else str(name)

    @property
    def uses_phrasebook(self) -> bool:
        """Whether the text is the built-in phrasebook."""
        return bool(self.phrasebook_splits)

    @property
    def phrasebook_splits(self) -> tuple[str, ...]:
        """Splits of the built-in phrasebook to train on; none if the text is another."""
        train = self.data.train
        name = train if isinstance(train, str) else train[0] if len(train) == 1 else ""
        return PHRASEBOOKS.get(name, ())

    @property
    def holds_out_test(self) -> bool:
        """Whether the test text of ``evaluate`` is a part of the training text."""
        return bool(self.data.test == HELD_OUT)

    def settings(self, kind: type[SettingsT]) -> SettingsT:
        """The settings of this class, in whichever section; the recipe must have them."""
        for section in (self.data, self.tokenizer, self.model, self.head, self.decoding):
            if isinstance(section, kind):
                return section
        raise AssertionError(f"a recipe for {self.task} must have settings of {kind.__name__}")

    def table(self) -> RecipeTable:
        """The recipe as a nested table, ready for TOML; file names made absolute."""
        data = as_table(self.data)
        if not self.uses_phrasebook:
            for split in ("train", "valid", "test"):
                if getattr(self.data, split) != HELD_OUT:
                    data[split] = [os.path.realpath(path) for path in self.named(split)]
        table: RecipeTable = {
            "task": self.task,
            "data": data,
            "model": {"type": self.model_type, **as_table(self.model)},
            "training": dict(self.training),
        }
        if self.tokenizer is not None:
            table["tokenizer"] = as_table(self.tokenizer)
        if self.head is not None:
            table["head"] = as_table(self.head)
        if self.decoding is not None:
            table["decoding"] = as_table(self.decoding)
        return table


def check_positions(positions: int | None, name: str, longest: int) -> None:
    """Raise SettingError if a model has fewer positions than a setting lets it be given."""
    if positions is not None and positions < longest:
        raise SettingError(
            f"model.max_length must be at least {name} = {longest}; got {positions}."
        )


def check_framed_positions(positions: int | None, most: int, tokenizer: TokenizerConfig) -> None:
    """Raise SettingError if a text of so many tokens has no positions for its begin and end."""
    longest = most + tokenizer.begins + 1  # the end is a token too
    if positions is not None and positions < longest:
        raise SettingError(
            f"model.max_length must be at least {longest}, for data.max_length = {most} and what "
            f"begins and ends a text; got {positions}. "
            "Lower data.max_length, or raise model.max_length."
        )
