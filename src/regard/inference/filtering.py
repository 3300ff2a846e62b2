"""Lines in, translations out: one answer a line, in order, as soon as there is one."""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.inference.predictor import Predictor
from regard.inference.translations import Alignment, Translation
from regard.tasks.documents import DocumentData, parse_document, source_of
from regard.text import Line, PairLayout, decode_lines, open_text
from regard.text.lines import readable, text_suffix

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
        iterator = iter(lines)
        while group := list(islice(iterator, _LINES)):
            yield group


def groups_of(file: Path | None) -> tuple[Iterator[list[bytes]], str, str]:
    """The raw lines of a file or of stdin in groups, what they are called, and their ending."""
    if file is not None:
        return of_file(file), str(file), text_suffix(file)
    stdin = sys.stdin.buffer
    return arriving(getattr(stdin, "read1", stdin.read)), "stdin", ""


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
    for lines in numbered(groups, name):
        read = [_read(line, layout, ending) for line in lines]
        for _, _, problem in read:
            if problem is not None and not skip_bad_lines:
                raise DataError(problem)
        found = predictor.translate([text for text, _, _ in read], **search)
        yield [
            Answer(where, tuple(translations), problem)
            for (_, where, problem), translations in zip(read, found, strict=True)
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


def _read(
    line: Line, layout: PairLayout | DocumentData, ending: str
) -> tuple[str, str, str | None]:
    """The text of a line, where it is, and what is wrong with it."""
    try:
        text = readable(line)
        if isinstance(layout, PairLayout):
            text = text_of(text, line.where, layout=layout, ending=ending)
        elif not text.strip():
            text = ""
        else:
            text = source_of(parse_document(line, layout, ending), layout)
        return text, line.where, None
    except DataError as error:
        return "", line.where, str(error)
