"""Beam search: the best answers among those that keep up with the K likeliest beginnings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from regard.checks import check_at_least
from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.ranking import Beams, Likeliest, RankedBeams, Ranking
from regard.decoding.step import RankingStep, StateT, Step
from regard.errors import SettingError
from regard.kernels import why_not


@torch.no_grad()
def beam(
    step: Step[StateT],
    state: StateT,
    *,
    beam_size: int = 4,
    n_best: int = 1,
    ranking: Ranking | None = None,
    bonus: Callable[[StateT], Float[Tensor, " R"]] | None = None,
    **options: Unpack[SearchOptions],
) -> list[list[Hypothesis]]:
    """The ``n_best`` answers that beam search finds for every sentence of a batch.

    Each step extends the K unfinished beginnings of a sentence by every token and ranks the results
    by their log-probability. Those among the first K that are ended are finished; the first K that
    are not go on. A sentence stops

    - when K answers are finished, or
    - when ``n_best`` are, and no beginning can still reach the worst of those: its log-probability
      can only fall, so the best it could ever score is that over the largest penalty, or
    - at its longest length. Beginnings then fill up the places that no finished answer took.

    A beam of one is therefore exactly `greedy`, and a beam as wide as the number of all answers is
    an exhaustive search. Equal candidates rank by the place of their beginning, then by token id.
    What a sentence gets does not depend on its batch; its rows leave the batch when it stops.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        beam_size: Beginnings kept per sentence, K.
        n_best: Answers wanted per sentence, at most K.
        ranking: How what goes on is chosen: `Required` words. None takes the likeliest.
        bonus: What is added to an answer's score, given the state that predicted its last token;
            never above zero. See `CoveragePenalty`.
        options: See `SearchOptions`.

    Returns:
        For each sentence its answers, all different: the finished ones from the best score down,
        then unfinished ones the same way. At least one, and fewer than ``n_best`` only where the
        search met no more.

    Raises:
        SettingError: A setting is out of range.

    Example:
        A model without a state in which 1 is likelier to end (0) than 2 is:

        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.4, 0.1, 0.5], [0.3, 0.4, 0.3]]).log()
        >>> best, second = beam(lambda token, state: (table[token], state), Nothing(),
        ...     batch_size=1, bos_id=2, eos_id=0, max_lengths=5, n_best=2, length_penalty=0.0)[0]
        >>> best.tokens, round(best.score, 3), second.tokens, round(second.score, 3)
        ((), -1.204, (1,), -1.833)
    """
    check_at_least("beam_size", beam_size, 1, cure="Use 1 for greedy search.")
    check_at_least("n_best", n_best, 1)
    if n_best > beam_size:
        raise SettingError(
            f"n_best must be at most beam_size; got n_best={n_best}, beam_size={beam_size}. "
            "A wider beam finds more answers."
        )
    bound = BoundOptions(**options)
    if not bound.batch_size:
        return []
    limits, eos_id = bound.limits, bound.eos_id
    ranking = Likeliest() if ranking is None else ranking
    ranking.check(limits, beam_size, eos_id)
    rulebook = bound.rulebook()
    is_plain = type(ranking) is Likeliest and not rulebook.rules and bonus is None
    if is_plain and isinstance(step, RankingStep) and why_not() is None:
        return _ranked_beam(step, state, bound, beam_size=beam_size, n_best=n_best)
    answers = _Answers(limits, n_best, bound.penalties)
    beams = Beams.start(len(limits), limits.device)
    token = torch.full((len(limits),), bound.bos_id, device=limits.device)
    for length in range(1, int(limits.max()) + 1):
        log_probs, state = step(token, state)
        if length == 1:
            ranking.check_rules(rulebook, log_probs)
        log_probs = rulebook.keep(log_probs, length, beams.tokens.flatten(0, 1), beams.sentences)
        ranked = ranking.rank(beams, log_probs, beam_size=beam_size, eos_id=eos_id, limits=limits)
        gains = None if bonus is None else bonus(state).double().view(beams.log_probs.shape)
        answers.finish(beams, ranked, length, gains)
        longer = beams.extend(ranked)
        stops = answers.stops(longer, length, beam_size)
        if stops.any():
            check_numbers(longer.log_probs)
            later = None if gains is None else gains.gather(1, ranked.going_origins)
            answers.close(beams, longer, stops, length, gains, later)
            if stops.all():
                break
        # The rows of the sentences that go on, each beam with the state of the one it extends.
        going = torch.from_numpy(np.flatnonzero(~stops)).to(limits.device)
        rows = (ranked.going_origins[going] + going[:, None] * beams.log_probs.shape[1]).flatten()
        if not torch.equal(rows, torch.arange(len(token), device=rows.device)):
            state = state.select(rows)
        beams = longer.select(going)
        token = beams.tokens[:, :, -1].flatten()
    return answers.collect()


@dataclass(slots=True)
class _ArrayBeams:
    """`Beams` in numpy."""

    sentences: Int64[np.ndarray, " A"]
    tokens: Int64[np.ndarray, "A W T"]
    log_probs: Float64[np.ndarray, "A W"]


class _ArrayRanked:
    """`RankedBeams` in numpy, and the rows and tokens of the beginnings that go on."""

    def __init__(self, count: int, beam_size: int, length: int) -> None:
        shape = (count, beam_size)
        self.ends: Bool[np.ndarray, "A K"] = np.empty(shape, np.bool_)
        self.origins: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.rows: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.going_log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.going_tokens: Int64[np.ndarray, "A K T"] = np.empty((*shape, length), np.int64)
        self.added: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)


def _ranked_beam(
    step: RankingStep[StateT], state: StateT, bound: BoundOptions, *, beam_size: int, n_best: int
) -> list[list[Hypothesis]]:
    """Beam search by a step that ranks tokens itself, without tensor operations around the step.

    Around a step of a small model, some thirty operations on tensors of a few numbers would take as
    long as the step itself.
    """
    # Only here: what cannot be compiled cannot be imported.
    from regard.kernels.search import extend, find_stops

    limits, count = bound.limits, len(bound.limits)
    answers = _Answers(limits, n_best, bound.penalties)
    beams = _ArrayBeams(np.arange(count), np.zeros((count, 1, 0), np.int64), np.zeros((count, 1)))
    token = torch.full((count,), bound.bos_id)
    flags, is_any = np.empty(3, np.bool_), np.empty(1, np.bool_)
    for length in range(1, int(limits.max()) + 1):
        values, tokens, state = step.best(token, state, beam_size + 1, bound.allowed.hidden(length))
        ranked = _ArrayRanked(len(beams.sentences), beam_size, length)
        extend(
            *(beams.tokens, beams.log_probs, values.numpy(), tokens.numpy(), bound.eos_id),
            *(ranked.ends, ranked.origins, ranked.log_probs, ranked.rows),
            *(ranked.going_log_probs, ranked.going_tokens, ranked.added, flags),
        )
        has_nan, has_ended, is_reordered = flags
        if has_nan:
            check_numbers(values)
        if has_ended:
            answers.finish(beams, ranked, length)
        longer = _ArrayBeams(beams.sentences, ranked.going_tokens, ranked.going_log_probs)
        rows, added, stops = ranked.rows, ranked.added, np.empty(len(beams.sentences), np.bool_)
        find_stops(
            *(longer.sentences, longer.log_probs, length, answers.counts, answers.scores),
            *(answers.largest_penalty, answers.limits, stops, is_any),
        )
        if is_any[0]:
            answers.close(beams, longer, stops, length)
            if stops.all():
                break
            going = np.flatnonzero(~stops)
            rows, added = rows[going], added[going]
            longer = _ArrayBeams(
                longer.sentences[going], longer.tokens[going], longer.log_probs[going]
            )
        if is_any[0] or is_reordered or rows.size != token.shape[0]:
            state = state.select(torch.from_numpy(rows.ravel()))
        beams, token = longer, torch.from_numpy(added.ravel())
    return answers.collect()


class _Answers:
    """The answers met so far, of every sentence of the batch, in numpy."""

    def __init__(self, limits: Tensor, n_best: int, penalties: Sequence[float]) -> None:
        self.limits, self._penalties, self._n_best = _array(limits), penalties, n_best
        self.largest_penalty = np.maximum.accumulate(np.array(penalties))[self.limits]  # (B,)
        # The best scores of finished answers, so that stopping is decided without a loop.
        self.scores = np.full((len(limits), n_best), -np.inf)
        self.counts = np.zeros(len(limits), np.int64)
        self._hypotheses: list[list[Hypothesis]] = [[] for _ in range(len(limits))]

    def finish(
        self,
        beams: Beams | _ArrayBeams,
        ranked: RankedBeams | _ArrayRanked,
        length: int,
        gains: Float[Tensor, "A W"] | None = None,
    ) -> None:
        """Take the answers that ended with this step; ``gains`` is the bonus of each beginning."""
        ends = _array(ranked.ends)
        if not ends.any():
            return
        sentences, origins, log_probs = map(
            _array, (beams.sentences, ranked.origins, ranked.log_probs)
        )
        scores = log_probs / self._penalties[length]
        if gains is not None:
            scores = scores + np.take_along_axis(_array(gains), origins, axis=1)
        scores = np.where(ends, scores, -np.inf)
        known = np.concatenate([self.scores[sentences], scores], axis=1)
        self.scores[sentences] = -np.sort(-known, axis=1)[:, : self._n_best]
        self.counts[sentences] += ends.sum(axis=1)
        rows, columns = ends.nonzero()
        beginnings, ended = origins[rows, columns], log_probs[rows, columns]
        self._keep(beams, rows, beginnings, ended, length, gains, finished=True)

    def stops(
        self, longer: Beams | _ArrayBeams, length: int, beam_size: int
    ) -> Bool[np.ndarray, " A"]:
        """Whether the search of each sentence is finished."""
        sentences, log_probs = _array(longer.sentences), _array(longer.log_probs)
        reachable = log_probs.max(axis=1) / self.largest_penalty[sentences]
        is_full = self.counts[sentences] >= beam_size
        is_best = self.scores[sentences, -1] >= reachable
        stops: Bool[np.ndarray, " A"] = is_full | is_best | (self.limits[sentences] <= length)
        return stops

    def close(
        self,
        beams: Beams | _ArrayBeams,
        longer: Beams | _ArrayBeams,
        stops: Bool[np.ndarray, " A"],
        length: int,
        gains: Float[Tensor, "A W"] | None = None,
        later: Float[Tensor, "A K"] | None = None,
    ) -> None:
        """Fill the places of the sentences that stop with what is unfinished there."""
        counts = self.counts[_array(beams.sentences)]
        few = stops & (counts < self._n_best)
        # Where nothing could follow and nothing had ended, the last beginnings are the answer.
        stuck = few & (_array(longer.log_probs).max(axis=1) == -np.inf) & (counts == 0)
        for these, source, choices, gained in (
            (few, longer, length, later),
            (stuck, beams, length - 1, gains),
        ):
            log_probs = _array(source.log_probs)
            rows, columns = (these[:, None] & (log_probs != -np.inf)).nonzero()
            unfinished = log_probs[rows, columns]
            self._keep(source, rows, columns, unfinished, choices, gained, finished=False)

    def collect(self) -> list[list[Hypothesis]]:
        """The best of each sentence; equal ones in the order in which they were met."""
        return [
            sorted(hypotheses, key=lambda one: (not one.is_finished, -one.score))[: self._n_best]
            for hypotheses in self._hypotheses
        ]

    def _keep(
        self,
        source: Beams | _ArrayBeams,
        rows: Int64[np.ndarray, " J"],
        columns: Int64[np.ndarray, " J"],
        log_probs: Float64[np.ndarray, " J"],
        length: int,
        gains: Float[Tensor, "A W"] | None,
        *,
        finished: bool,
    ) -> None:
        gained = np.zeros(len(rows)) if gains is None else _array(gains)[rows, columns]
        for sentence, tokens, log_prob, gain in zip(
            _array(source.sentences)[rows].tolist(),
            _array(source.tokens)[rows, columns].tolist(),
            log_probs.tolist(),
            gained.tolist(),
            strict=True,
        ):
            score = log_prob / self._penalties[length] + gain
            self._hypotheses[sentence].append(
                Hypothesis(
                    tokens=tuple(tokens), score=score, log_prob=log_prob, is_finished=finished
                )
            )


def _array(values: Tensor | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()
