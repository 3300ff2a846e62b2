"""Lines in, answers out: one answer a line, in order, as soon as there is one."""

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from regard.config import JsonValue
from regard.errors import DataError
from regard.inference.predictor import Predictor
from regard.tasks import AnyTask, DecodingConfig, OnePassTask
from regard.tasks.task import Answer
from regard.tasks.translations import Translations
from regard.text import Line, decode_lines, open_text
from regard.text.lines import text_suffix
from regard.text.tables import TABLES, Field, read_table
from regard.text.tagged import read_words

ReadT = TypeVar("ReadT")
# A line as a file has it, or one that was read of a table.
RawLine: TypeAlias = bytes | Line

# Answers that are kept for lines that repeat.
_KEPT = 4096
# Files of words that are to be tagged.
_WORD_A_LINE = (".conll", ".conllu", *TABLES)
# Lines answered at once, and bytes read at once where they are there.
_LINES = 256
_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class AnsweredLine:
    """Result of one line.

    Attributes:
        where: The line, as ``file:line``.
        answer: The task's; None of a line that asks nothing, where nothing is not translated.
        problem: Why the line was not answered; None if it was.
    """

    where: str
    answer: Answer | None
    problem: str | None = None

    @property
    def translations(self) -> Translations:
        """The answer, of a run that writes a text for a text."""
        assert isinstance(self.answer, Translations)
        return self.answer

    def text(self) -> str:
        """The answer in a line."""
        return "" if self.answer is None else self.answer.text()

    def printed(self, number: int, output_format: str, n_best: int = 1) -> Iterator[str]:
        """The lines that say it.

        Args:
            number: Of the line that was answered, from 1.
            output_format: ``jsonl`` for an object, ``text`` for what people read.
            n_best: How many answers there are of it; of several each says the number of its line.
        """
        if output_format == "jsonl":
            yield json.dumps(self.to_dict(), ensure_ascii=False)
        elif n_best > 1:
            for each in self.translations.found:
                yield f"{number}\t{each.score:.4f}\t{each.text}"
        else:
            yield self.text()

    def to_dict(self) -> dict[str, JsonValue]:
        """The answer as plain data, ready for JSON."""
        if self.answer is None:
            return {}
        problem = {} if self.problem is None else {"problem": self.problem}
        return {**self.answer.to_dict(), **problem}


@dataclass(frozen=True, slots=True)
class Asked(Generic[ReadT]):
    """Request of a line.

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
    """The lines of a file, compressed or not, in groups worth answering together.

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


def of_table(path: Path, fields: Sequence[Field]) -> Iterator[list[Line]]:
    """The rows of a table in groups, each as the JSON object of the fields that it has.

    Raises:
        DataError: The file is missing, unreadable or damaged, or has no column of such a name.
    """
    table = read_table(path, fields)
    keys = {field.name: field.keys[0] for field in fields}
    only = keys[fields[0].name] if len(fields) == 1 else None

    def record(row: Line) -> Line:
        cells = row.text.split("\t")
        found = {
            keys[name]: cells[place - 1]
            for name, place in table.columns.items()
            if place <= len(cells)
        }
        if not found and len(cells) == 1 and only is not None:
            found = {only: row.text}
        text = json.dumps(found, ensure_ascii=False) if row.text.strip() else ""
        return replace(row, text=text)

    rows = map(record, table.lines)
    while group := list(islice(rows, _LINES)):
        yield group


def of_sentences(path: Path, word: Field) -> Iterator[list[Line]]:
    """The sentences of a file with a word a line in groups, each as a JSON object of its words.

    Raises:
        DataError: The file is missing, unreadable or damaged, or a word cannot be read.
    """
    found = read_words(path, word=word.column)
    sentences = (Line(json.dumps({"tokens": each.words}), each.where) for each in found)
    while group := list(islice(sentences, _LINES)):
        yield group


def groups_of(
    file: Path | None, fields: Sequence[Field] = ()
) -> tuple[Iterator[Sequence[RawLine]], str, str]:
    """The raw lines of a file or of stdin in groups, what they are called, and their ending.

    Args:
        file: None is stdin.
        fields: What the rows of a table say, which are then read as objects of JSONL; none leaves
            them as lines.
    """
    if file is None:
        return arriving(_read_stdin), "stdin", ""
    if [field.name for field in fields] == ["word"] and text_suffix(file) in _WORD_A_LINE:
        return of_sentences(file, fields[0]), str(file), ".jsonl"
    if fields and text_suffix(file) in TABLES:
        return of_table(file, fields), str(file), ".jsonl"
    return of_file(file), str(file), text_suffix(file)


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


def numbered(groups: Iterable[Sequence[RawLine]], name: str) -> Iterator[list[Line]]:
    r"""Groups of raw lines as lines that know their places.

    Args:
        groups: As files give them; those that know their places already keep them.
        name: What they are called in messages, such as the file's name.

    Example:
        >>> [[line.where for line in group] for group in numbered([[b"a\n", b"b\n"], [b"c"]], "x")]
        [['x:1', 'x:2'], ['x:3']]
    """
    waiting: deque[bytes] = deque()
    decoded = decode_lines(iter(waiting.popleft, None), name)
    for group in groups:
        waiting.extend(line for line in group if isinstance(line, bytes))
        yield [line if isinstance(line, Line) else next(decoded) for line in group]


def asked(
    groups: Iterable[Sequence[RawLine]],
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
        >>> from regard.text.lines import readable
        >>> groups = asked([[b"a\n", b"\xff\n", b"b\n"]], readable, name="x")
        >>> next(groups)
        [Asked(where='x:1', content='a', problem=None)]
        >>> next(groups)
        Traceback (most recent call last):
        regard.errors.DataError: x:2: not UTF-8 (byte 0xFF at place 1). Say what it is in, ...
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


def first_problem(task: AnyTask, file: Path) -> str | None:
    """Why nothing of a table can be answered, as far as its first rows show; None if some can.

    Args:
        task: What is asked.
        file: A table of Arrow's making or a file of lines.

    Raises:
        DataError: The file is missing, unreadable or damaged, or has no column of such a name.
    """
    groups, name, ending = groups_of(file, task.asked_fields())
    for lines in asked(groups, _reader(task, ending), name=name, skip_bad_lines=True):
        problems = [line.problem for line in lines]
        return problems[0] if problems and None not in problems else None
    return None


def _reader(task: AnyTask, ending: str) -> Callable[[Line], object]:
    """Parser of a line into a request."""
    asking = task.question if isinstance(task, OnePassTask) else task.asked
    return partial(asking, ending=ending)


def _answerable(
    task: AnyTask, lines: Sequence[Asked[object]], *, skip_bad_lines: bool
) -> tuple[list[Asked[object]], DataError | None]:
    """The lines that can be encoded: those before one that cannot, or all others with its problem.

    Args:
        task: What they are asked of.
        lines: What they ask.
        skip_bad_lines: Whether one that cannot be encoded asks nothing.

    Returns:
        The lines, and the error of the first that cannot, if that ends them.
    """
    found: list[Asked[object]] = []
    for line in lines:
        try:
            if line.content is not None:
                task.encode([line.content])
            found.append(line)
        except DataError as error:
            if not skip_bad_lines:
                return found, error
            found.append(Asked(line.where, None, str(error)))
    return found, None


def answers(
    predictor: Predictor,
    groups: Iterable[Sequence[RawLine]],
    *,
    name: str,
    ending: str = "",
    skip_bad_lines: bool = False,
    decoding: DecodingConfig | None = None,
    attention: bool = False,
    layers: Sequence[int] | None = None,
    answer: Callable[[Sequence[object]], Sequence[Answer]] | None = None,
) -> Iterator[list[AnsweredLine]]:
    """The answers to each group of raw lines, in order; what repeats is answered once.

    The last answers are kept for that, so that no file is too long.

    Args:
        predictor: The model in use.
        groups: Lines, answered a group at once.
        name: What the lines are called in messages, such as the file's name.
        ending: Of a file's name, which says how its lines are read.
        skip_bad_lines: Whether a line that cannot be read gives an empty answer, not an error.
        decoding: As for ``Predictor.answers``, and so are the others.
        attention: See there.
        layers: See there.
        answer: What is said of examples instead of the predictor's answers.

    Raises:
        DataError: A line cannot be read.
    """
    task = predictor.task
    read = _reader(task, ending)
    nothing = Translations.of_nothing("") if predictor.writes and answer is None else None
    if answer is None:
        answer = partial(predictor.answers, decoding=decoding, attention=attention, layers=layers)
    known: dict[bytes | str, Answer] = {}
    raw: list[bytes | str] = []

    def noted() -> Iterator[Sequence[RawLine]]:
        for group in groups:
            raw[:] = [line.text if isinstance(line, Line) else line for line in group]
            yield group

    def learn(lines: Sequence[Asked[object]]) -> None:
        new = {
            text: line.content
            for text, line in zip(raw, lines, strict=False)
            if line.content is not None and text not in known
        }
        known.update(zip(new, answer([*new.values()]), strict=True))

    for read_lines in asked(noted(), read, name=name, skip_bad_lines=skip_bad_lines):
        lines, error = read_lines, None
        try:
            learn(lines)
        except DataError:
            # One of them is too long: which, shows only line by line.
            lines, error = _answerable(task, lines, skip_bad_lines=skip_bad_lines)
            learn(lines)
        yield [
            AnsweredLine(line.where, nothing if line.content is None else known[text], line.problem)
            for text, line in zip(raw, lines, strict=False)
        ]
        if error is not None:
            raise error
        if attention or len(known) > _KEPT:
            known.clear()
