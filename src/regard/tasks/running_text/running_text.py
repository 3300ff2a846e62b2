"""Running text: its passages, the end that is held out, and the base of its tasks."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from regard.errors import DataError
from regard.tasks.batches import Batch
from regard.tasks.oddities import CheckedExample
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.settings.data import RunningTextData
from regard.tasks.settings.recipe import Recipe
from regard.tasks.streaming import Chunk, Shard, Stored, StreamedTask
from regard.tasks.task import AnswerT
from regard.text import BadLines, Line, Sequences, normalize, read_lines
from regard.text.corpus import MappedArrays
from regard.text.masking import NO_WORD
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import readable
from regard.text.reading.records import object_of, value_at

# Lines of a passage, the unit that is held out, evaluated and shown.
_PASSAGE_LINES = 100
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of text.

    Attributes:
        lines: Its lines, normalised.
        where: ``file:line`` it begins at.

    Example:
        >>> passage = Passage(("It rained.", "We stayed in."), "tale.txt:1")
        >>> passage.beginning, passage.size
        ('It rained. / We stayed in.…', 25)
    """

    lines: tuple[str, ...]
    where: str

    def text(self) -> str:
        """The lines of the passage, each with its end."""
        return "\n".join((*self.lines, ""))

    @property
    def size(self) -> int:
        """Bytes of it in UTF-8, line ends included."""
        return len(self.text().encode())

    @property
    def beginning(self) -> str:
        """The first words, in a line for people."""
        return f"{' / '.join(line for line in self.lines if line)[:60]}…"


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Ids to make a window of, or the windows of a passage, in all ids of the text."""

    ids: Int[np.ndarray, " ids"]
    first: int
    length: int
    # The number of each id's word, where words are read; −1 for a line's end.
    words: Int64[np.ndarray, " _"] = field(default_factory=lambda: _NONE)
    blanks: bool = False  # whether it has blanks to fill in, and nothing else is masked

    def shifted(self, generator: torch.Generator, ahead: int = 0) -> int:
        """A random first id, less than ``length`` beyond the first."""
        shift = int(torch.randint(self.length, (), generator=generator))
        return min(len(self.ids) - ahead - self.length, self.first + shift)


class StoredStretches(Stored[Stretch]):
    """Stretches of so many tokens of a text on disk, the arrays ``text`` and perhaps ``words``."""

    def __init__(
        self, arrays: MappedArrays, length: int, *, ahead: int = 0, has_words: bool = False
    ) -> None:
        super().__init__(arrays)
        self._text, self._words = arrays["text"].ids, arrays["words"].ids if has_words else _NONE
        self._size = len(self._text) - ahead
        self._length = min(length, self._size)

    def __len__(self) -> int:
        return self._size // self._length

    def sample(self, index: int) -> Stretch:
        self.arrays.reading()
        return Stretch(self._text, index * self._length, self._length, self._words)

    def lengths_at(self, indices: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, "2 n"]:
        return np.full((2, len(indices)), self._length)


class RunningTextTask(OnePassTask[Passage, AnswerT], StreamedTask[Passage, Stretch]):
    """A task on running text, whose end is held out; ``ahead`` tokens follow a window."""

    ahead: ClassVar[int] = 0
    unit: ClassVar[str] = "passages"
    can_smooth: ClassVar[bool] = True
    least_for_test: ClassVar[int] = 3  # a passage is many lines, and two are left of three
    held_out: ClassVar[Literal["hash", "end"]] = "end"
    subject = staticmethod(Passage.text)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Passage]:
        column = recipe.settings(RunningTextData).column
        return [passage for file in recipe.files(split) for passage in _passages(file, column)]

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[Passage]
    ) -> tuple[list[Passage], list[Passage]]:
        """The text without its end, and its end: ``data.valid_share`` of its lines."""
        share = recipe.settings(RunningTextData).valid_share
        count = share * sum(len(passage.lines) for passage in examples)
        remaining, held = list(examples), list[Passage]()
        while len(remaining) > 1 and sum(len(passage.lines) for passage in held) < count:
            held.insert(0, remaining.pop())
        if not held:
            raise DataError(
                f"data.train must hold more than {_PASSAGE_LINES} lines where data.valid is not "
                "set; got fewer."
            )
        return remaining, held

    @staticmethod
    def checked(passage: Passage) -> CheckedExample:
        return CheckedExample(passage.lines, (), passage.where)

    @staticmethod
    def named_texts(passage: Passage) -> dict[str, str]:
        return {"text": " ".join(passage.lines)}

    @classmethod
    def shards(cls, recipe: Recipe, split: str) -> list[Shard]:
        return [(file, None) for file in recipe.files(split)]

    @classmethod
    def of_chunk(
        cls, recipe: Recipe, chunk: Chunk, *, bad_lines: BadLines | None = None
    ) -> list[Passage]:
        column, ending, size = recipe.settings(RunningTextData).column, chunk.ending, _PASSAGE_LINES
        lines = [(t, line.where) for line in chunk.decoded() for t in _texts(line, ending, column)]
        parts = [lines[first : first + size] for first in range(0, len(lines), size)]
        return [Passage(tuple(text for text, _ in part), part[0][1]) for part in parts]

    @classmethod
    def drop_overlap(cls, examples: Sequence[Passage], held: Sequence[Passage]) -> list[Passage]:
        """All examples: the held-out part is another part of the text."""
        return list(examples)

    @property
    @abstractmethod
    def window(self) -> int:
        """Tokens of the text in a training window."""

    @abstractmethod
    def stretch(self, passage: Passage) -> Stretch:
        """The tokens and line ends of a passage."""

    def samples(
        self, examples: Sequence[Passage], too_long: BadLines, *, training: bool
    ) -> list[Stretch]:
        """Windows of the whole text in training, which ``collate`` shifts; else each passage."""
        if not training:
            return [self.stretch(passage) for passage in examples]
        whole = self._joined(examples)
        length = min(self.window, whole.length)
        firsts = range(0, whole.length - length + 1, length)
        return [replace(whole, first=first, length=length) for first in firsts]

    def to_store(
        self, examples: Sequence[Passage], *, too_long: BadLines
    ) -> Mapping[str, Sequences]:
        """The tokens and line ends of the passages, and the number of each one's word."""
        whole = self._joined(examples)
        arrays = {"text": whole.ids[self.ahead :].astype(np.int32), "words": whole.words}
        ends = np.array([0, len(whole.ids) - self.ahead], dtype=np.int64)
        return {name: Sequences(arrays[name], ends) for name in self.stored_as}

    def stored(self, arrays: MappedArrays) -> StoredStretches:
        has_words = "words" in self.stored_as
        return StoredStretches(arrays, self.window, ahead=self.ahead, has_words=has_words)

    def length(self, sample: Stretch) -> int:
        return sample.length

    def collate_part(
        self, encoded: Sequence[Stretch], rows: slice, *, generator: torch.Generator
    ) -> Batch:
        """The windows of a slice of a batch, with the noise that they have in the whole."""
        whole = self.collate(encoded, generator=generator)
        owners = whole["owners"]
        mine = (owners >= rows.start) & (owners < rows.stop)
        part = {
            name: value[mine] if isinstance(value, Tensor) and len(value) == len(mine) else value
            for name, value in whole.items()
        }
        return {**part, "owners": part["owners"] - rows.start, "count": rows.stop - rows.start}

    def _joined(self, examples: Sequence[Passage]) -> Stretch:
        """The passages as one text, in which the end of a line is the next one's ``ahead``."""
        ids, words, number = [_NONE], [_NONE], 0
        for index, stretch in enumerate(map(self.stretch, examples)):
            ids.append(stretch.ids[self.ahead if index else 0 :])
            words.append(np.where(stretch.words == NO_WORD, NO_WORD, stretch.words + number))
            number += int(stretch.words.max(initial=-1)) + 1
        text = np.concatenate(ids)
        return Stretch(text, 0, len(text) - self.ahead, np.concatenate(words))


def perplexity(nats: float, tokens: int) -> float:
    """``exp`` of the mean −log p; a hopeless model's is cut where floats end."""
    return math.exp(min(700.0, nats / tokens))


def _texts(line: Line, ending: str, column: str) -> list[str]:
    """The text of a line, normalised; that in a record of JSONL may be several lines."""
    if ending != ".jsonl":
        return [normalize(readable(line))]
    if not line.text.strip():
        return []
    record = object_of(readable(line), line.where)
    text = value_at(record, column)
    if not isinstance(text, str):
        keys = ", ".join(map(repr, record)) or "none"
        raise DataError(
            f"{line.where}: expected text at the key {column!r}; found {keys}. Say which it is: "
            "data.column."
        )
    return [normalize(part) for part in text.split("\n")]


def _passages(path: Path, column: str) -> Iterable[Passage]:
    lines: list[str] = []
    is_empty, where, ending = True, f"{path}:1", text_suffix(path)
    for line in read_lines(path):
        if not lines:
            where = line.where
        lines += (texts := _texts(line, ending, column))
        is_empty = is_empty and not any(texts)
        while len(lines) >= _PASSAGE_LINES:
            yield Passage(tuple(lines[:_PASSAGE_LINES]), where)
            lines, where = lines[_PASSAGE_LINES:], line.where
    if is_empty:
        raise DataError(f"{path} must hold text; got none. Is it the right file?")
    if lines:
        yield Passage(tuple(lines), where)
