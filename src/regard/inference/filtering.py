"""Lines in, answers or scores out: one a line, in order, as soon as there is one."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from regard.config import JsonValue
from regard.decoding.hypothesis import divisors
from regard.devices import moved
from regard.errors import DataError
from regard.inference.predictor import Predictor
from regard.inference.requests import request_in
from regard.tasks import AnyTask, DecodingConfig
from regard.tasks.sequences.sequence_task import token_costs
from regard.tasks.sequences.translations import Hypotheses, Translations
from regard.tasks.task import Answer
from regard.text import Line, batched, pad_pairs
from regard.text.reading.line_groups import groups_of
from regard.text.reading.lines import readable
from regard.text.tokenizers.pieces import END

RequestT = TypeVar("RequestT")

# Answers that are cached for lines that repeat.
_CACHED = 4096
# Prompts of a language model that are continued, and printed, together.
_PROMPTS = 32


@dataclass(frozen=True, slots=True)
class AnsweredLine(Generic[RequestT]):
    """A line, its request and its answer."""

    where: str
    request: RequestT | None
    problem: str | None = None
    answer: Answer | None = None

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
    read: Callable[[Line], RequestT | None],
    *,
    skip_bad_lines: bool = False,
) -> Iterator[list[AnsweredLine[RequestT]]]:
    """The request of each line of each group; those before an unreadable line, then its error."""
    for lines in groups:
        requests: list[AnsweredLine[RequestT]] = []
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
    read = partial(request_in, task, ending=ending)
    for lines in requests_in(groups, read, skip_bad_lines=True):
        problems = [line.problem for line in lines]
        return problems[0] if problems and None not in problems else None
    return None


@dataclass(frozen=True, slots=True)
class Answering(Generic[RequestT]):
    """How lines are read and answered."""

    read: Callable[[Line], RequestT | None]
    answer: Callable[[Sequence[RequestT]], Sequence[Answer]]
    nothing: Answer | None = None
    at_once: int | None = None
    is_cached: bool = True


def predicting(
    predictor: Predictor,
    *,
    ending: str = "",
    decoding: DecodingConfig | None = None,
    attention: bool = False,
    layers: Sequence[int] | None = None,
) -> Answering[object]:
    """The prediction of lines."""
    return Answering(
        partial(request_in, predictor.task, ending=ending),
        partial(predictor.predictions, decoding=decoding, attention=attention, layers=layers),
        Translations.of_nothing("") if predictor.is_seq2seq else None,
        _PROMPTS if predictor.writes and not predictor.is_seq2seq else None,
        is_cached=not attention,  # weights are many
    )


def answers(
    groups: Iterable[Sequence[Line]],
    answering: Answering[RequestT],
    *,
    skip_bad_lines: bool = False,
) -> Iterator[list[AnsweredLine[RequestT]]]:
    """The answers to each group of lines, in order; what repeats is answered once.

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

    def answer(lines: Sequence[AnsweredLine[RequestT]]) -> None:
        new = {
            text: line.request
            for text, line in zip(texts, lines, strict=False)
            if line.request is not None and text not in cached
        }
        cached.update(zip(new, answering.answer([*new.values()]), strict=True))

    read = answering.read
    for requests in requests_in(pieces(), read, skip_bad_lines=skip_bad_lines):
        lines, error = requests, None
        try:
            answer(lines)
        except DataError:
            # One of them is too long: which, shows only line by line.
            lines, error = _answerable(answering, lines, skip_bad_lines=skip_bad_lines)
            answer(lines)
        yield [
            replace(line, answer=answering.nothing if line.request is None else cached[text])
            for text, line in zip(texts, lines, strict=False)
        ]
        if error is not None:
            raise error
        if not answering.is_cached or len(cached) > _CACHED:
            cached.clear()


def _answerable(
    answering: Answering[RequestT],
    lines: Sequence[AnsweredLine[RequestT]],
    *,
    skip_bad_lines: bool,
) -> tuple[list[AnsweredLine[RequestT]], DataError | None]:
    """The lines that can be answered, and the error of the first that cannot, if it ends them."""
    usable: list[AnsweredLine[RequestT]] = []
    for line in lines:
        try:
            if line.request is not None:
                answering.answer([line.request])
            usable.append(line)
        except DataError as error:
            if not skip_bad_lines:
                return usable, error
            usable.append(AnsweredLine(line.where, None, str(error)))
    return usable, None


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A given output and how likely the model holds it; empty where there is none."""

    source: str = ""
    target: str = ""
    tokens: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()  # of each token, and of the end
    log_prob: float = 0.0
    score: float = 0.0  # over the length penalty

    def text(self) -> str:
        """Score, log-probability and output, a tab between; nothing without an output."""
        if not self.log_probs:
            return ""
        return f"{self.score:.4f}\t{self.log_prob:.4f}\t{self.target}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.source, "target": self.target}
        if self.log_probs:
            members["score"] = round(self.score, 6)
            members["log_prob"] = round(self.log_prob, 6)
            members["tokens"] = list(self.tokens)
            members["log_probs"] = [round(each, 6) for each in self.log_probs]
        return members


def score_pairs(
    predictor: Predictor, pairs: Sequence[tuple[str, str]], *, length_penalty: float
) -> list[ScoredPair]:
    """How likely the model holds each target, given its source."""
    sources = [predictor.tokenizer.source.encode(source) for source, _ in pairs]
    targets = [predictor.tokenizer.target.encode(target) for _, target in pairs]
    for source, target in zip(sources, targets, strict=True):
        _check_lengths(predictor, len(source), len(target))
    model, source_end = predictor.seq2seq.eval(), predictor.sequence_task.data.source_end
    scores: dict[int, ScoredPair] = {}
    sizes = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
    for indices in batched(sizes, predictor.decoding.batch_tokens):
        read, written = ([side[index] for index in indices] for side in (sources, targets))
        batch = moved(pad_pairs(read, written, source_end=source_end), predictor.device)
        costs = torch.split(token_costs(model, batch).double(), batch.target_lengths.tolist())
        for index, row in zip(indices, costs, strict=True):
            pieces = predictor.tokenizer.target.pieces(pairs[index][1])
            names = (*(piece.text for piece in pieces), END)
            log_probs = tuple((-row).tolist())
            total = sum(log_probs, 0.0)
            score = total / divisors(length_penalty, len(log_probs))[-1]
            scores[index] = ScoredPair(*pairs[index], names, log_probs, total, score)
    return [scores[index] for index in range(len(pairs))]


def scoring(
    predictor: Predictor, *, ending: str = "", decoding: DecodingConfig | None = None
) -> Answering[Any]:
    """The scoring of lines: of a source and an output each; of running text, its surprise."""
    if not predictor.is_seq2seq:
        read = partial(predictor.task.parse_line, ending=ending)
        return Answering(read, predictor.answers)
    length_penalty = (decoding or predictor.decoding).length_penalty
    return Answering(
        partial(_read, predictor=predictor, ending=ending),
        partial(score_pairs, predictor, length_penalty=length_penalty),
        ScoredPair(),
    )


def _read(line: Line, predictor: Predictor, ending: str) -> tuple[str, str] | None:
    """The source and the output of a line; None of an empty one."""
    if not readable(line).strip():
        return None
    pair = predictor.sequence_task.parse_pair(line, ending)
    read = len(predictor.tokenizer.source.encode(pair.source))
    written = len(predictor.tokenizer.target.encode(pair.target))
    _check_lengths(predictor, read, written, where=f"{line.where}: ")
    return pair.source, pair.target


def _check_lengths(predictor: Predictor, source: int, target: int, *, where: str = "") -> None:
    if not source:
        raise DataError(f"{where}source must hold text; got an empty one.")
    most = predictor.seq2seq.max_length
    if most is None:
        return
    for name, length, signs in (
        ("source", source, int(predictor.sequence_task.data.source_end)),
        ("target", target, 1),
    ):
        if length > most - signs:
            raise DataError(
                f"{where}{name} must be at most {most - signs} tokens long; got {length}. "
                "The model has no positions beyond."
            )
