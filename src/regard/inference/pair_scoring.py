"""How likely a model holds outputs that are given: pairs in, scores out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from regard.config import JsonValue
from regard.decoding import Scored, score_answers
from regard.devices import moved
from regard.errors import DataError
from regard.inference.filtering import requests_in
from regard.inference.line_groups import RawLine
from regard.inference.predictor import Predictor
from regard.text import BOS_ID, EOS_ID, Line, batched
from regard.text.lines import readable


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Scores of one line.

    Attributes:
        where: The line, as ``file:line``.
        source: The source text, normalised.
        target: The output that was given, normalised.
        scored: How likely it is; None of an empty line, and where there is a problem.
        tokens: The output's tokens as people read them, and last its end.
        problem: Why the line was not scored; None if it was.
    """

    where: str
    source: str
    target: str
    scored: Scored | None = None
    tokens: tuple[str, ...] = ()
    problem: str | None = None

    def text(self) -> str:
        """Score, log-probability and output, a tab between; nothing of an empty line."""
        if self.scored is None:
            return ""
        return f"{self.scored.score:.4f}\t{self.scored.log_prob:.4f}\t{self.target}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.source, "target": self.target}
        if self.problem is not None:
            members["problem"] = self.problem
        if self.scored is not None:
            members["score"] = round(self.scored.score, 6)
            members["log_prob"] = round(self.scored.log_prob, 6)
            members["tokens"] = list(self.tokens)
            members["log_probs"] = [round(each, 6) for each in self.scored.log_probs]
        return members


def score_pairs(
    predictor: Predictor, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None
) -> list[Scored]:
    """How likely the model holds each target, given its source.

    The numbers are those that a search would have given the same tokens.

    Args:
        predictor: The model in use.
        pairs: Source and target of each; a target may be empty.
        length_penalty: None takes the recipe's.

    Raises:
        DataError: A source is empty; or source or target is longer than the model's positions.
    """
    if length_penalty is None:
        length_penalty = predictor.decoding.length_penalty
    sources = [predictor.tokenizer.source.encode(source) for source, _ in pairs]
    targets = [predictor.tokenizer.target.encode(target) for _, target in pairs]
    for source, target in zip(sources, targets, strict=True):
        _check_lengths(predictor, len(source), len(target))
    found: dict[int, Scored] = {}
    predictor.model.eval()
    sizes = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
    for places in batched(sizes, predictor.decoding.batch_tokens):
        with torch.no_grad():
            read = predictor.sequence_task.pad_sources([sources[place] for place in places])
            state = predictor.seq2seq.start(*moved(read, predictor.device))
            scored = score_answers(
                predictor.seq2seq.step,
                state,
                [targets[place] for place in places],
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                length_penalty=length_penalty,
                device=predictor.device,
            )
        for place, one in zip(places, scored, strict=True):
            found[place] = one
    return [found[place] for place in range(len(pairs))]


def scored_lines(
    predictor: Predictor,
    groups: Iterable[Sequence[RawLine]],
    *,
    name: str,
    ending: str = "",
    skip_bad_lines: bool = False,
    length_penalty: float | None = None,
) -> Iterator[list[ScoredPair]]:
    """The pairs of each group of raw lines with their scores, in order.

    Args:
        predictor: The model in use.
        groups: Lines, scored a group at once.
        name: What the lines are called in messages, such as the file's name.
        ending: Of a file's name: lines of ``.jsonl`` are objects, all others columns.
        skip_bad_lines: Whether a line that cannot be scored is left empty, not an error.
        length_penalty: As for ``score_pairs``.

    Raises:
        DataError: A line cannot be scored.
    """
    read = partial(_read, predictor=predictor, ending=ending)
    for lines in requests_in(groups, read, name=name, skip_bad_lines=skip_bad_lines):
        pairs = [line.request or ("", "") for line in lines]
        usable = [place for place, (source, _) in enumerate(pairs) if source]
        scored = score_pairs(
            predictor, [pairs[place] for place in usable], length_penalty=length_penalty
        )
        found = [
            ScoredPair(line.where, *pair, problem=line.problem)
            for line, pair in zip(lines, pairs, strict=True)
        ]
        for place, one in zip(usable, scored, strict=True):
            pieces = [piece.text for piece in predictor.tokenizer.target.pieces(pairs[place][1])]
            tokens = (*pieces, "⟨end⟩")
            found[place] = replace(found[place], scored=one, tokens=tokens)
        yield found


def _read(line: Line, predictor: Predictor, ending: str) -> tuple[str, str]:
    """The source and the output of a line; of an empty one, empty ones."""
    if not readable(line).strip():
        return "", ""
    pair = predictor.sequence_task.asked_pair(line, ending)
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
