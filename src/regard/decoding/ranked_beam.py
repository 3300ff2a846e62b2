"""Beam search over a step that knows the likeliest tokens: `beam` without tensor operations.

Around a step of a small model, some thirty operations on tensors of a few numbers would take as
long as the step itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions
from regard.decoding.step import RankingStep, StateT


@dataclass(slots=True)
class _Beams:
    """The unfinished beginnings of the sentences still searched, best first."""

    sentences: Int64[np.ndarray, " A"]
    tokens: Int64[np.ndarray, "A W T"]
    log_probs: Float64[np.ndarray, "A W"]


class _Extended:
    """The best extensions: all of the first K, and the K that go on; see ``RankedBeams``.

    Args:
        count: Sentences, A.
        beam_size: K.
        length: Tokens of those that go on, T.
    """

    def __init__(self, count: int, beam_size: int, length: int) -> None:
        shape = (count, beam_size)
        self.ends: Bool[np.ndarray, "A K"] = np.empty(shape, np.bool_)
        self.origins: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.rows: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.going_log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.going_tokens: Int64[np.ndarray, "A K T"] = np.empty((*shape, length), np.int64)
        self.added: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)


def ranked_beam(
    step: RankingStep[StateT],
    state: StateT,
    bound: BoundOptions,
    *,
    beam_size: int,
    n_best: int,
) -> list[list[Hypothesis]]:
    """Beam search over the likeliest tokens, without rules or bonus; answers are those of `beam`.

    Args:
        step: The model.
        state: The state before the first token, one row per sentence.
        bound: The options of the search.
        beam_size: Beginnings kept per sentence, K.
        n_best: Answers wanted per sentence, at most K.

    Raises:
        RunError: The model gave NaN.
    """
    # Only here: what cannot be compiled cannot be imported.
    from regard.kernels.search.ranking import extend

    limits, eos_id = bound.limits, bound.eos_id
    found = _Found(limits.contiguous().numpy(), n_best, bound.penalties)
    count, told = len(limits), np.empty(3, np.bool_)
    beams = _Beams(np.arange(count), np.zeros((count, 1, 0), np.int64), np.zeros((count, 1)))
    token = torch.full((count,), bound.bos_id)
    for length in range(1, int(limits.max()) + 1):
        values, tokens, state = step.best(token, state, beam_size + 1, bound.allowed.hidden(length))
        best = _Extended(len(beams.sentences), beam_size, length)
        extend(
            beams.tokens,
            beams.log_probs,
            values.numpy(),
            tokens.numpy(),
            eos_id,
            best.ends,
            best.origins,
            best.log_probs,
            best.rows,
            best.going_log_probs,
            best.going_tokens,
            best.added,
            told,
        )
        if told[0]:
            check_numbers(values)
        if told[1]:
            found.finish(beams, best, length)
        longer = _Beams(beams.sentences, best.going_tokens, best.going_log_probs)
        rows, added = best.rows, best.added
        stops = found.stops(longer, length)
        if stops is not None:
            found.close(beams, longer, stops, length)
            if stops.all():
                break
            going = np.flatnonzero(~stops)
            rows, added = rows[going], added[going]
            longer = _Beams(longer.sentences[going], longer.tokens[going], longer.log_probs[going])
        if stops is not None or told[2] or rows.size != token.shape[0]:
            state = state.select(torch.from_numpy(rows.ravel()))
        beams, token = longer, torch.from_numpy(added.ravel())
    return found.collect()


class _Found:
    """The answers met so far, of every sentence of the batch."""

    def __init__(
        self, limits: Int64[np.ndarray, " B"], n_best: int, penalties: Sequence[float]
    ) -> None:
        self._limits, self._penalties = limits, penalties
        self._largest_penalty = np.maximum.accumulate(np.array(penalties))[limits]
        # The best scores of finished answers, so that stopping is decided without a loop.
        self._scores = np.full((len(limits), n_best), -np.inf)
        self._counts = np.zeros(len(limits), np.int64)
        self._met: list[list[Hypothesis]] = [[] for _ in limits]

    def finish(self, beams: _Beams, best: _Extended, length: int) -> None:
        """Take the answers that ended with this step."""
        scores = np.where(best.ends, best.log_probs / self._penalties[length], -np.inf)
        known = np.concatenate([self._scores[beams.sentences], scores], axis=1)
        self._scores[beams.sentences] = -np.sort(-known, axis=1)[:, : self._scores.shape[1]]
        self._counts[beams.sentences] += best.ends.sum(axis=1)
        rows, places = best.ends.nonzero()
        origins = best.origins[rows, places]
        self._keep(beams, rows, origins, best.log_probs[rows, places], length, finished=True)

    def stops(self, longer: _Beams, length: int) -> Bool[np.ndarray, " A"] | None:
        """Sentences whose search is finished; None if none is."""
        from regard.kernels.search.ranking import find_stops

        stops, is_any = np.empty(len(longer.sentences), np.bool_), np.empty(1, np.bool_)
        find_stops(
            longer.sentences,
            longer.log_probs,
            length,
            self._counts,
            self._scores,
            self._largest_penalty,
            self._limits,
            stops,
            is_any,
        )
        return stops if is_any[0] else None

    def close(
        self, beams: _Beams, longer: _Beams, stops: Bool[np.ndarray, " A"], length: int
    ) -> None:
        """Fill the places of the sentences that stop with what is unfinished there."""
        counts = self._counts[beams.sentences]
        few = stops & (counts < self._scores.shape[1])
        # Where nothing could follow and nothing had ended, the last beginnings are the answer.
        stuck = few & (longer.log_probs.max(axis=1) == -np.inf) & (counts == 0)
        for these, source, choices in ((few, longer, length), (stuck, beams, length - 1)):
            rows, places = (these[:, None] & (source.log_probs != -np.inf)).nonzero()
            log_probs = source.log_probs[rows, places]
            self._keep(source, rows, places, log_probs, choices, finished=False)

    def collect(self) -> list[list[Hypothesis]]:
        """The best of each sentence; equal ones in the order in which they were met."""
        n_best = self._scores.shape[1]
        return [
            sorted(met, key=lambda one: (not one.is_finished, -one.score))[:n_best]
            for met in self._met
        ]

    def _keep(
        self,
        source: _Beams,
        rows: Int64[np.ndarray, " J"],
        places: Int64[np.ndarray, " J"],
        log_probs: Float64[np.ndarray, " J"],
        length: int,
        *,
        finished: bool,
    ) -> None:
        for sentence, ids, log_prob in zip(
            source.sentences[rows].tolist(),
            source.tokens[rows, places].tolist(),
            log_probs.tolist(),
            strict=True,
        ):
            score = log_prob / self._penalties[length]
            self._met[sentence].append(
                Hypothesis(tokens=tuple(ids), score=score, log_prob=log_prob, is_finished=finished)
            )
