"""Lines in, translations out: one answer a line, in order, as soon as there is one."""

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from regard.errors import DataError
from regard.inference.predictor import Predictor
from regard.inference.translations import Alignment, Translation
from regard.tasks import DataConfig
from regard.tasks.generation import DocumentData
from regard.tasks.generation.documents import parse_document, source_of
from regard.text import Line, PairLayout, decode_lines, open_text
from regard.text.lines import readable, text_suffix

ReadT = TypeVar("ReadT")

# Lines translated at once, and bytes read at once where they are there.
_LINES = 256
_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one line.

    Attributes:
        where: The line, as ``file:line``.
        translations: Best first; one empty translation of an empty line.
        problem: Why the line was not translated; None if it was.
    """

    where: str
    translations: tuple[Translation, ...]
    problem: str | None = None

    @property
    def best(self) -> Translation:
        """The first translation."""
        return self.translations[0]

    @property
    def alignment(self) -> Alignment | None:
        """What the best translation's tokens looked at; None where that is not known."""
        return self.best.alignment

    def text(self) -> str:
        """The best translation; with its alignment, the links behind a tab: ``0-0 1-1``."""
        if self.alignment is None:
            return self.best.text
        links = " ".join(f"{source}-{output}" for source, output in self.alignment.links())
        return f"{self.best.text}\t{links}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        members: dict[str, Any] = {"source": self.best.source, **_members(self.best)}
        if self.best.parts > 1:
            members["parts"] = self.best.parts
        if self.problem is not None:
            members["problem"] = self.problem
        if len(self.translations) > 1:
            members["n_best"] = [_members(each) for each in self.translations]
        if (found := self.alignment) is not None:
            members["source_tokens"] = [piece.text for piece in found.source_pieces]
            members["output_tokens"] = [piece.text for piece in found.output_pieces]
            # One column more than tokens is the source's end.
            rows = found.weights.tolist()
            members["attention"] = [[round(weight, 4) for weight in row] for row in rows]
        return members


@dataclass(frozen=True, slots=True)
class Asked(Generic[ReadT]):
    """What a line asks.

    Attributes:
        where: The line, as ``file:line``.
        content: What was read of it; None where it could not be.
        problem: Why not; None if it could.
    """

    where: str
    content: ReadT | None
    problem: str | None = None


def arriving(read: Callable[[int], bytes]) -> Iterator[list[bytes]]:
    r"""Lines as they come: all that are there, and a wait only where none is.

    So that whoever types, or another program that waits for each answer, gets it at once.

    Args:
        read: Gives at most so many bytes, as soon as there are any, and none at the end: the
            ``read1`` of a file.

    Example:
        >>> import io
        >>> list(arriving(io.BytesIO(b"a\nb\nc").read1))
        [[b'a\n', b'b\n'], [b'c']]
    """
    rest = b""
    while chunk := read(_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        whole = iter([line + b"\n" for line in lines])
        while group := list(islice(whole, _LINES)):
            yield group
    if rest:
        yield [rest]


def of_file(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, compressed or not, in groups worth translating together.

    Raises:
        DataError: The file is missing, unreadable or damaged.
    """
    with open_text(path) as lines:
        group: list[bytes] = []
        try:
            for line in lines:
                group.append(line)
                if len(group) == _LINES:
                    yield group
                    group = []
        except Exception:
            yield group  # what came before the damage
            raise
        if group:
            yield group


def groups_of(file: Path | None) -> tuple[Iterator[list[bytes]], str, str]:
    """The raw lines of a file or of stdin in groups, what they are called, and their ending."""
    if file is not None:
        return of_file(file), str(file), text_suffix(file)
    return arriving(_read_stdin), "stdin", ""


def _read_stdin(count: int) -> bytes:
    """At most so many bytes of stdin, as soon as there are any."""
    try:
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        stdin = sys.stdin.buffer
        return getattr(stdin, "read1", stdin.read)(count)
    except OSError as error:
        raise DataError(
            f"stdin must be open to be read; got: {error.strerror}. Pipe text in, or name a file."
        ) from error


def numbered(groups: Iterable[Sequence[bytes]], name: str) -> Iterator[list[Line]]:
    r"""Groups of raw lines as lines that know their places.

    Args:
        groups: As files give them.
        name: What they are called in messages, such as the file's name.

    Example:
        >>> [[line.where for line in group] for group in numbered([[b"a\n", b"b\n"], [b"c"]], "x")]
        [['x:1', 'x:2'], ['x:3']]
    """
    waiting: deque[bytes] = deque()
    decoded = decode_lines(iter(waiting.popleft, None), name)
    for group in groups:
        waiting.extend(group)
        yield [next(decoded) for _ in group]


def asked(
    groups: Iterable[Sequence[bytes]],
    read: Callable[[Line], ReadT],
    *,
    name: str,
    skip_bad_lines: bool = False,
) -> Iterator[list[Asked[ReadT]]]:
    r"""What is read of each line of each group.

    The lines before one that cannot be read come first, so that they can be answered, and then its
    error.

    Args:
        groups: Raw lines, as files give them.
        read: What is asked by a line.
        name: What the lines are called in messages, such as the file's name.
        skip_bad_lines: Whether a line that cannot be read asks nothing, and is no error.

    Raises:
        DataError: A line cannot be read.

    Example:
        >>> groups = asked([[b"a\n", b"\xff\n", b"b\n"]], readable, name="x")
        >>> next(groups)
        [Asked(where='x:1', content='a', problem=None)]
        >>> next(groups)
        Traceback (most recent call last):
        regard.errors.DataError: x:2: not UTF-8 (byte 0xFF at place 1). Convert the file: ...
    """
    for lines in numbered(groups, name):
        found: list[Asked[ReadT]] = []
        for line in lines:
            try:
                found.append(Asked(line.where, read(line)))
            except DataError as error:
                if not skip_bad_lines:
                    yield found
                    raise
                found.append(Asked(line.where, None, str(error)))
        yield found


def text_of(line: str, where: str, *, layout: PairLayout, ending: str = "") -> str:
    r"""The text to translate in a line of a file.

    Args:
        line: The line.
        where: Its ``file:line``, for messages.
        layout: Which column or key holds the source.
        ending: Of the file's name: ``.tsv``, ``.jsonl``; of any other, the line is the text.

    Raises:
        DataError: There is no such column or key.

    Example:
        >>> text_of("我爱中国\tI love China.", "a.tsv:1", layout=PairLayout(), ending=".tsv")
        '我爱中国'
    """
    if ending not in (".tsv", ".jsonl") or not line.strip():
        return line
    if ending == ".tsv":
        cells, column = line.split("\t"), layout.columns[0] if layout.columns else 1
        if len(cells) < column:
            raise DataError(f"{where}: expected at least {column} columns, found {len(cells)}.")
        return cells[column - 1]
    try:
        text = json.loads(line)[layout.source_key]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise DataError(f"{where}: expected a JSON object with a text at {layout.source_key!r}.")
    return text


def source_in(text: str, where: str, data: DataConfig | DocumentData) -> str:
    """What a model reads of a text that is typed in; of documents it may be a JSON record.

    Raises:
        DataError: It asks nothing.
    """
    if isinstance(data, DocumentData):
        return source_of(parse_document(Line(text, where), data, ""), data)
    return text


def answers(
    predictor: Predictor,
    groups: Iterable[Sequence[bytes]],
    *,
    name: str,
    ending: str = "",
    skip_bad_lines: bool = False,
    **search: Any,
) -> Iterator[list[Answer]]:
    """The answers to each group of raw lines, in order.

    Args:
        predictor: The model in use.
        groups: Lines, translated a group at once.
        name: What the lines are called in messages, such as the file's name.
        ending: Of a file's name, as for ``text_of``.
        skip_bad_lines: Whether a line that cannot be read gives an empty answer, not an error.
        search: ``decoding``, ``attention`` and ``layers`` of ``Predictor.translate``, and the
            others.

    Raises:
        DataError: A line cannot be read.
    """
    data = predictor.recipe.data
    if isinstance(data, DocumentData):
        layout: PairLayout | DocumentData = data
    else:
        layout = PairLayout(columns=data.columns)
    read = partial(_read, layout=layout, ending=ending)
    for lines in asked(groups, read, name=name, skip_bad_lines=skip_bad_lines):
        found = predictor.translate([line.content or "" for line in lines], **search)
        yield [
            Answer(line.where, tuple(translations), line.problem)
            for line, translations in zip(lines, found, strict=True)
        ]


def _members(translation: Translation) -> dict[str, Any]:
    """A translation, its figures, and a note if it was cut."""
    members: dict[str, Any] = {
        "translation": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
    }
    if translation.utility is not None:
        members["utility"] = round(translation.utility, 6)
    if not translation.is_finished:
        members["is_finished"] = False
    return members


def _read(line: Line, layout: PairLayout | DocumentData, ending: str) -> str:
    """The source that a line asks about."""
    text = readable(line)
    if isinstance(layout, PairLayout):
        return text_of(text, line.where, layout=layout, ending=ending)
    return source_of(parse_document(line, layout, ending), layout) if text.strip() else ""
