"""Scores of text that is given: how likely a model holds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from regard.config import JsonValue
from regard.decoding import Scored, score_answers
from regard.devices import moved
from regard.errors import DataError
from regard.inference.filtering import Answering
from regard.inference.predictor import Predictor
from regard.inference.requests import example_in
from regard.tasks import DecodingConfig
from regard.text import BOS_ID, EOS_ID, Line, batched
from regard.text.reading.lines import readable


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Scores of an output that is given."""

    source: str = ""
    target: str = ""
    scored: Scored | None = None
    tokens: tuple[str, ...] = ()

    def text(self) -> str:
        """Score, log-probability and output, a tab between; nothing without an output."""
        if self.scored is None:
            return ""
        return f"{self.scored.score:.4f}\t{self.scored.log_prob:.4f}\t{self.target}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        members: dict[str, JsonValue] = {"source": self.source, "target": self.target}
        if self.scored is not None:
            members["score"] = round(self.scored.score, 6)
            members["log_prob"] = round(self.scored.log_prob, 6)
            members["tokens"] = list(self.tokens)
            members["log_probs"] = [round(each, 6) for each in self.scored.log_probs]
        return members


def score_pairs(
    predictor: Predictor, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None
) -> list[Scored]:
    """How likely the model holds each target, given its source."""
    if length_penalty is None:
        length_penalty = predictor.decoding.length_penalty
    sources = [predictor.tokenizer.source.encode(source) for source, _ in pairs]
    targets = [predictor.tokenizer.target.encode(target) for _, target in pairs]
    for source, target in zip(sources, targets, strict=True):
        _check_lengths(predictor, len(source), len(target))
    scores: dict[int, Scored] = {}
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
            scores[place] = one
    return [scores[place] for place in range(len(pairs))]


def scoring(
    predictor: Predictor, *, ending: str = "", decoding: DecodingConfig | None = None
) -> Answering[Any]:
    """The scoring of lines: of a source and an output each; of running text, its surprise."""
    if not predictor.is_seq2seq:
        read = partial(example_in, predictor.task, ending=ending)
        return Answering(read, predictor.answers)
    length_penalty = (decoding or predictor.decoding).length_penalty
    pieces = predictor.tokenizer.target.pieces

    def answer(pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
        scored = score_pairs(predictor, pairs, length_penalty=length_penalty)
        return [
            ScoredPair(*pair, one, (*[piece.text for piece in pieces(pair[1])], "⟨end⟩"))
            for pair, one in zip(pairs, scored, strict=True)
        ]

    return Answering(partial(_read, predictor=predictor, ending=ending), answer, ScoredPair())


def _read(line: Line, predictor: Predictor, ending: str) -> tuple[str, str] | None:
    """The source and the output of a line; None of an empty one."""
    if not readable(line).strip():
        return None
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
