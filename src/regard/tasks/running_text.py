"""Running text: its passages, the end that is held out, and what tasks of it have in common."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from regard.errors import DataError
from regard.tasks.checking import CheckedExample
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import Recipe
from regard.tasks.settings import RunningTextData
from regard.tasks.streaming import Chunk, EncodedT, Shard, StreamedTask
from regard.tasks.task import AnswerT
from regard.text import BadLines, Line, normalize, read_lines
from regard.text.reading.lines import readable, text_suffix
from regard.text.reading.records import object_of, value_at

# Lines of a passage, the unit that is held out, evaluated and shown.
_PASSAGE_LINES = 100


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
        """Its lines, each with its end."""
        return "\n".join((*self.lines, ""))

    @property
    def size(self) -> int:
        """Bytes of it in UTF-8, line ends included."""
        return len(self.text().encode())

    @property
    def beginning(self) -> str:
        """Its first words, in a line for people."""
        return f"{' / '.join(line for line in self.lines if line)[:60]}…"


class RunningTextTask(OnePassTask[Passage, AnswerT], StreamedTask[Passage, EncodedT]):
    """A task whose examples are passages of a running text, of which the end is held out."""

    unit: ClassVar[str] = "passages"
    can_smooth: ClassVar[bool] = True
    least_for_test: ClassVar[int] = 3  # a passage is many lines, and two are left of three
    held_out: ClassVar[Literal["hash", "end"]] = "end"
    subject = staticmethod(Passage.text)

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[Passage]:
        """The passages of a split, a hundred lines each; none if the recipe names no file."""
        column = recipe.settings(RunningTextData).column
        return [passage for file in recipe.files(split) for passage in _passages(file, column)]

    @classmethod
    def hold_out(
        cls, recipe: Recipe, examples: Sequence[Passage]
    ) -> tuple[list[Passage], list[Passage]]:
        """The text without its end, and its end: ``data.valid_share`` of its lines."""
        share = recipe.settings(RunningTextData).valid_share
        wanted = share * sum(len(passage.lines) for passage in examples)
        rest, held = list(examples), list[Passage]()
        while len(rest) > 1 and sum(len(passage.lines) for passage in held) < wanted:
            held.insert(0, rest.pop())
        if not held:
            raise DataError(
                f"data.train must hold more than {_PASSAGE_LINES} lines where data.valid is not "
                "set; got fewer."
            )
        return rest, held

    @staticmethod
    def checked(passage: Passage) -> CheckedExample:
        """A passage's lines."""
        return CheckedExample(passage.lines, (), passage.where)

    @classmethod
    def shards(cls, recipe: Recipe, split: str) -> list[Shard]:
        """The files of a split."""
        return [(file, None) for file in recipe.files(split)]

    @classmethod
    def of_chunk(
        cls, recipe: Recipe, chunk: Chunk, *, bad_lines: BadLines | None = None
    ) -> list[Passage]:
        """The passages in some lines of a file."""
        column, ending, size = recipe.settings(RunningTextData).column, chunk.ending, _PASSAGE_LINES
        lines = [(t, line.where) for line in chunk.decoded() for t in _texts(line, ending, column)]
        parts = [lines[first : first + size] for first in range(0, len(lines), size)]
        return [Passage(tuple(text for text, _ in part), part[0][1]) for part in parts]

    @classmethod
    def drop_overlap(cls, examples: Sequence[Passage], held: Sequence[Passage]) -> list[Passage]:
        """All of them: what is held out is another part of the text."""
        return list(examples)


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
