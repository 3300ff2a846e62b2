"""Beam search: the best answers among those that keep up with the K likeliest beginnings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from regard.bounds import bounded
from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.rules import Rulebook
from regard.decoding.step import RankingStep, StateT, Step
from regard.decoding.threads import by_threads
from regard.devices import CPU
from regard.errors import SettingError
from regard.kernels import why_not

Values = Float[np.ndarray, "R J"]
Ids = Int64[np.ndarray, "R J"]
Stops = Bool[np.ndarray, " A"]


@torch.no_grad()
def beam(
    step: Step[StateT],
    state: StateT,
    *,
    beam_size: int = 4,
    n_best: int = 1,
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
    - at its longest length. Beginnings then fill up the positions that no finished answer took.

    A beam of one is therefore exactly `greedy`, and a beam as wide as the number of all answers is
    an exhaustive search. Equal candidates rank by their beginning's position, then by token id.
    Answers to a sentence do not depend on its batch; its rows leave the batch when it stops.

    Args:
        step: The model: last token and state in, log-probabilities and the next state out.
        state: The state before the first token, one row per sentence.
        beam_size: Beginnings kept per sentence, K.
        n_best: Answers wanted per sentence, at most K.
        bonus: Added to an answer's score, by the state that predicted its last token; never above
            zero. See `CoveragePenalty`.
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
    beam_size, n_best = bounded("beam_size", beam_size), bounded("n_best", n_best)
    _check_n_best(n_best, beam_size)
    bound = BoundOptions(**options)
    bound.check(step, state)
    if not bound.batch_size:
        return []

    def search(state: StateT, bound: BoundOptions) -> list[list[Hypothesis]]:
        return _search(step, state, bound, beam_size, n_best, bonus)

    if bonus is not None:
        return search(state, bound)
    return by_threads(search, step, state, bound, beam_size)


def _search(
    step: Step[StateT],
    state: StateT,
    bound: BoundOptions,
    beam_size: int,
    n_best: int,
    bonus: Callable[[StateT], Float[Tensor, " R"]] | None,
) -> list[list[Hypothesis]]:
    """``beam`` of some sentences."""
    limits, device = bound.limits.contiguous().cpu().numpy(), bound.limits.device
    rulebook, count = bound.rulebook(), len(limits)
    answers = _Answers(limits, n_best, bound.penalties)
    beams = _Beams(np.arange(count), np.zeros((count, 1, 0), np.int64), np.zeros((count, 1)))
    token = torch.full((count,), bound.bos_id, device=device)
    extend, mark_stops = (
        (_extend, _mark_stops) if why_not() is None else (_extend_by_numpy, _mark_stops_by_numpy)
    )
    ranking = step if isinstance(step, RankingStep) and not rulebook.rules else None
    for length in range(1, int(limits.max()) + 1):
        if ranking is not None:
            hidden = bound.allowed.hidden(length)
            most = min(beam_size + 1, ranking.vocab_size)
            values, tokens, state = ranking.best(token, state, most, hidden)
        else:
            log_probs, state = step(token, state)
            values, tokens = _likeliest(log_probs, rulebook, beams, beam_size)
        if bonus is not None:
            beams.gains = bonus(state).double().cpu().numpy().reshape(beams.log_probs.shape)
        ranked = _Ranked(len(beams.sentences), beam_size, length)
        extend(beams, values.numpy(), tokens.numpy(), bound.eos_id, ranked)
        has_nan, has_ended, is_reordered = ranked.flags
        if has_nan:
            check_numbers(values)
        if has_ended:
            answers.finish(beams, ranked, length)
        gains = None if beams.gains is None else beams.gains.ravel()[ranked.rows]
        longer = _Beams(beams.sentences, ranked.going_tokens, ranked.going_log_probs, gains)
        rows, added, stops = ranked.rows, ranked.added, np.empty(len(beams.sentences), np.bool_)
        is_any = mark_stops(stops, longer, answers, length)
        if is_any:
            answers.close(beams, longer, stops, length)
            if stops.all():
                break
            going = np.flatnonzero(~stops)
            rows, added = rows[going], added[going]
            longer = _Beams(longer.sentences[going], longer.tokens[going], longer.log_probs[going])
        if is_any or is_reordered or rows.size != token.shape[0]:
            state = state.select(torch.from_numpy(rows.ravel()).to(device))
        beams, token = longer, torch.from_numpy(added.ravel()).to(device)
    return answers.collect()


@dataclass(slots=True)
class _Beams:
    """Unfinished beginnings of the sentences still searched, best first, as arrays.

    Around a step of a small model, some thirty operations on tensors of a few numbers would take as
    long as the step itself.
    """

    sentences: Int64[np.ndarray, " A"]  # which of the whole batch
    tokens: Int64[np.ndarray, "A W T"]
    log_probs: Float64[np.ndarray, "A W"]  # -inf for a position without a beginning
    gains: Float64[np.ndarray, "A W"] | None = None  # the bonus of answers that end after them


class _Ranked:
    """The best extensions of each sentence: all of the first K, and the K that go on."""

    def __init__(self, count: int, beam_size: int, length: int) -> None:
        shape = (count, beam_size)
        self.ends: Bool[np.ndarray, "A K"] = np.empty(shape, np.bool_)
        self.origins: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.rows: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        self.going_log_probs: Float64[np.ndarray, "A K"] = np.empty(shape)
        self.going_tokens: Int64[np.ndarray, "A K T"] = np.empty((*shape, length), np.int64)
        self.added: Int64[np.ndarray, "A K"] = np.empty(shape, np.int64)
        # A log-probability is NaN; an answer ended; other beginnings go on, or in another order.
        self.flags = np.empty(3, np.bool_)


class _Answers:
    """The answers met so far, of every sentence of the batch."""

    def __init__(
        self, limits: Int64[np.ndarray, " B"], n_best: int, penalties: Sequence[float]
    ) -> None:
        self.limits, self._penalties, self._n_best = limits, penalties, n_best
        self.largest_penalty = np.maximum.accumulate(np.array(penalties))[limits]  # (B,)
        # The best scores of finished answers, so that stopping is decided without a loop.
        self.scores = np.full((len(limits), n_best), -np.inf)
        self.counts = np.zeros(len(limits), np.int64)
        self._hypotheses: list[list[Hypothesis]] = [[] for _ in range(len(limits))]

    def finish(self, beams: _Beams, ranked: _Ranked, length: int) -> None:
        """Take the answers that ended with this step."""
        rows, columns = ranked.ends.nonzero()
        beginnings, ended = ranked.origins[rows, columns], ranked.log_probs[rows, columns]
        self._keep(beams, rows, beginnings, ended, length, finished=True)

    def close(self, beams: _Beams, longer: _Beams, stops: Stops, length: int) -> None:
        """Fill the beams of the sentences that stop with their unfinished hypotheses."""
        counts = self.counts[beams.sentences]
        few = stops & (counts < self._n_best)
        # Where nothing could follow and nothing had ended, the last beginnings are the answer.
        stuck = few & (longer.log_probs.max(axis=1) == -np.inf) & (counts == 0)
        for these, source, choices in ((few, longer, length), (stuck, beams, length - 1)):
            rows, columns = (these[:, None] & (source.log_probs != -np.inf)).nonzero()
            unfinished = source.log_probs[rows, columns]
            self._keep(source, rows, columns, unfinished, choices, finished=False)

    def collect(self) -> list[list[Hypothesis]]:
        """The best of each sentence; equal ones in the order in which they were met."""
        return [
            sorted(hypotheses, key=lambda one: (not one.is_finished, -one.score))[: self._n_best]
            for hypotheses in self._hypotheses
        ]

    def _keep(
        self,
        source: _Beams,
        rows: Int64[np.ndarray, " J"],
        columns: Int64[np.ndarray, " J"],
        log_probs: Float64[np.ndarray, " J"],
        length: int,
        *,
        finished: bool,
    ) -> None:
        gained = np.zeros(len(rows)) if source.gains is None else source.gains[rows, columns]
        for sentence, tokens, log_prob, gain in zip(
            source.sentences[rows].tolist(),
            source.tokens[rows, columns].tolist(),
            log_probs.tolist(),
            gained.tolist(),
            strict=True,
        ):
            score = log_prob / self._penalties[length] + gain
            if finished:
                self.counts[sentence] += 1
                best = self.scores[sentence]
                best[-1] = max(best[-1], score)
                best[::-1].sort()
            self._hypotheses[sentence].append(
                Hypothesis(
                    tokens=tuple(tokens), score=score, log_prob=log_prob, is_finished=finished
                )
            )


def _check_n_best(n_best: int, beam_size: int) -> None:
    if n_best > beam_size:
        raise SettingError(
            f"n_best must be at most beam_size; got n_best={n_best}, beam_size={beam_size}. "
            "A wider beam finds more answers."
        )


def _likeliest(
    log_probs: Float[Tensor, "R V"], rulebook: Rulebook, beams: _Beams, beam_size: int
) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"]]:
    """The likeliest tokens that may follow each beginning; of equal ones those with lower ids."""
    device, count = log_probs.device, beam_size + 1
    before = torch.from_numpy(beams.tokens).flatten(0, 1).to(device)
    sentences = torch.from_numpy(beams.sentences).to(device)
    log_probs = rulebook.keep(log_probs, before.shape[1] + 1, before, sentences)
    # K tokens that do not end a beginning, and its end where that ranks among the first K, are
    # among its best K + 1.
    values, tokens = log_probs.topk(min(count + 1, log_probs.shape[1]), dim=1)
    # topk leaves the order of equal values open, which a stable sort does not.
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] != -torch.inf)).any(dim=1)
    if bool(tied.any()):
        exact = log_probs[tied].sort(dim=1, descending=True, stable=True)
        values[tied] = exact.values[:, : values.shape[1]]
        tokens[tied] = exact.indices[:, : tokens.shape[1]]
    values = values.to(CPU, torch.promote_types(values.dtype, torch.float32))
    return values[:, :count].contiguous(), tokens[:, :count].cpu().contiguous()


def _extend(beams: _Beams, values: Values, tokens: Ids, eos_id: int, ranked: _Ranked) -> None:
    """Rank the extensions of each sentence's beginnings by the likeliest tokens after each."""
    # Imported here, since kernels cannot be compiled everywhere.
    from regard.kernels.search import extend

    extend(
        *(beams.tokens, beams.log_probs, values, tokens, eos_id),
        *(ranked.ends, ranked.origins, ranked.log_probs, ranked.rows),
        *(ranked.going_log_probs, ranked.going_tokens, ranked.added, ranked.flags),
    )


def _extend_by_numpy(
    beams: _Beams, values: Values, tokens: Ids, eos_id: int, ranked: _Ranked
) -> None:
    (A, W, T), K, N = beams.tokens.shape, ranked.ends.shape[1], values.shape[1]
    missing = ((0, 0), (0, max(0, 2 * K - W * N)))
    every = (values.reshape(A, W, N) + beams.log_probs[:, :, None]).reshape(A, -1)
    every = np.pad(every, missing, constant_values=-np.inf)
    order = np.argsort(-every, axis=1, kind="stable")[:, : 2 * K]
    chosen = np.take_along_axis(every, order, axis=1)
    ids = np.take_along_axis(np.pad(tokens.reshape(A, -1), missing), order, axis=1)
    beginnings, is_end = np.minimum(order // N, W - 1), ids == eos_id
    going = np.argsort(is_end, axis=1, kind="stable")[:, :K]
    ranked.ends = (is_end & (chosen != -np.inf))[:, :K]
    ranked.origins, ranked.log_probs = beginnings[:, :K], chosen[:, :K]
    rows = np.take_along_axis(beginnings, going, axis=1) + W * np.arange(A)[:, None]
    # Where all but K candidates end, an ended one may be among these: it does not go on.
    alive = np.where(is_end, -np.inf, chosen)
    ranked.rows, ranked.going_log_probs = rows, np.take_along_axis(alive, going, axis=1)
    ranked.added = np.take_along_axis(ids, going, axis=1)
    ranked.going_tokens[:, :, :T] = beams.tokens.reshape(A * W, T)[rows]
    ranked.going_tokens[:, :, T] = ranked.added
    is_reordered = (rows.ravel() != np.arange(A * K)).any()
    ranked.flags[:] = np.isnan(values[:, 0]).any(), ranked.ends.any(), is_reordered


def _mark_stops(stops: Stops, longer: _Beams, answers: _Answers, length: int) -> bool:
    """Mark sentences that stop at this length; whether there are any."""
    from regard.kernels.search import find_stops

    is_any = np.empty(1, np.bool_)
    find_stops(
        *(longer.sentences, longer.log_probs, length, answers.counts, answers.scores),
        *(answers.largest_penalty, answers.limits, stops, is_any),
    )
    return bool(is_any[0])


def _mark_stops_by_numpy(stops: Stops, longer: _Beams, answers: _Answers, length: int) -> bool:
    sentences, alive = longer.sentences, longer.log_probs
    best = alive.max(axis=1) / answers.largest_penalty[sentences]
    is_beaten = answers.scores[sentences, -1] >= best
    is_full = answers.counts[sentences] >= alive.shape[1]
    stops[:] = is_full | is_beaten | (answers.limits[sentences] <= length)
    return bool(stops.any())
