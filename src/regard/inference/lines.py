"""Lines in, answers or scores out: one a line, in order, as soon as there is one."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from regard.config import JsonValue
from regard.errors import DataError
from regard.inference.use import Answering, Request, RunInUse
from regard.tasks import AnyTask, DecodingConfig
from regard.tasks.sequences.translations import Hypotheses
from regard.tasks.task import Answer
from regard.text import Line
from regard.text.reading.line_groups import groups_of

# Answers that are cached for lines that repeat.
_CACHED = 4096


@dataclass(frozen=True, slots=True)
class AnsweredLine:
    """A line, its request and its answer."""

    where: str
    request: Request | None
    problem: str | None = None
    answer: Answer | None = None

    @property
    def unknown(self) -> Sequence[str]:
        """Characters or words of the line that the tokenizer has no ids for."""
        return () if self.request is None else self.request.unknown

    def text(self) -> str:
        """The answer, as people read it."""
        return "" if self.answer is None else self.answer.text()

    def printed(self, number: int, output_format: str, n_best: int = 1) -> Iterator[str]:
        """The lines that hold the answer."""
        if output_format == "jsonl":
            yield json.dumps(self.to_dict(), ensure_ascii=False)
        elif isinstance(self.answer, Hypotheses):
            yield from self.answer.lines(number if n_best > 1 else None)
        else:
            yield self.text()

    def to_dict(self) -> dict[str, JsonValue]:
        """The answer as plain data, ready for JSON."""
        if self.answer is None:
            return {}
        problem = {} if self.problem is None else {"problem": self.problem}
        return {**self.answer.to_dict(), **problem}


def requests_in(
    groups: Iterable[Sequence[Line]],
    read: Callable[[Line], Request | None],
    *,
    skip_bad_lines: bool = False,
) -> Iterator[list[AnsweredLine]]:
    """The request of each line of each group; those before an unreadable line, then its error."""
    for lines in groups:
        requests: list[AnsweredLine] = []
        for line in lines:
            try:
                requests.append(AnsweredLine(line.where, read(line)))
            except DataError as error:
                if not skip_bad_lines:
                    yield requests
                    raise
                requests.append(AnsweredLine(line.where, None, str(error)))
        yield requests


def first_problem(task: AnyTask, file: Path) -> str | None:
    """Why nothing of a table can be answered, as far as its first rows show; None if some can."""
    groups, ending = groups_of(file, task.input_fields())

    def read(line: Line) -> Request | None:
        example = task.parse_line(line, ending)
        return None if example is None else Request(example, ())

    for lines in requests_in(groups, read, skip_bad_lines=True):
        problems = [line.problem for line in lines]
        return problems[0] if problems and None not in problems else None
    return None


@dataclass(frozen=True, slots=True)
class LineAnswering:
    """How lines are read and answered."""

    read: Callable[[Line], Request | None]
    answer: Callable[[Sequence[Request]], Sequence[Answer]]
    nothing: Answer | None = None
    at_once: int | None = None
    is_cached: bool = True


def predicting(
    use: RunInUse[AnyTask], *, ending: str = "", **options: Unpack[Answering]
) -> LineAnswering:
    """The prediction of lines."""
    return LineAnswering(
        partial(use.parse_line, ending=ending),
        partial(use.answer, **options),
        use.nothing,
        use.at_once,
        is_cached=not options.get("attention"),  # weights are many
    )


def scoring(
    use: RunInUse[AnyTask], *, ending: str = "", decoding: DecodingConfig | None = None
) -> LineAnswering:
    """The scoring of lines: of a source and an output each; of running text, its surprise."""
    read = partial(use.parse_scored, ending=ending)
    return LineAnswering(read, partial(use.score, decoding=decoding), use.no_score)


def answers(
    groups: Iterable[Sequence[Line]], answering: LineAnswering, *, skip_bad_lines: bool = False
) -> Iterator[list[AnsweredLine]]:
    """The answers to each group of lines, in order; repeated lines are answered once.

    The last answers are cached for that, so that no file is too long.

    Args:
        groups: Lines, answered a group at once.
        answering: How they are answered.
        skip_bad_lines: Whether a line that cannot be read gives an empty answer, not an error.

    Raises:
        DataError: A line cannot be read.
    """
    cached: dict[str, Answer] = {}
    texts: list[str] = []

    def pieces() -> Iterator[Sequence[Line]]:
        for group in groups:
            most = answering.at_once or len(group)
            for first in range(0, len(group), max(1, most)):
                some = group[first : first + most]
                texts[:] = [line.text for line in some]
                yield some

    def answer(lines: Sequence[AnsweredLine]) -> None:
        new = {
            text: line.request
            for text, line in zip(texts, lines, strict=False)
            if line.request is not None and text not in cached
        }
        cached.update(zip(new, answering.answer([*new.values()]), strict=True))

    for lines in requests_in(pieces(), answering.read, skip_bad_lines=skip_bad_lines):
        answer(lines)
        yield [
            replace(line, answer=answering.nothing if line.request is None else cached[text])
            for text, line in zip(texts, lines, strict=False)
        ]
        if not answering.is_cached or len(cached) > _CACHED:
            cached.clear()
