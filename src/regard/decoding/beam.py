"""The best answers among those that keep up with the K likeliest beginnings."""

from collections.abc import Callable
from typing import Unpack

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.checks import check_at_least
from regard.decoding.hypothesis import Hypothesis, check_numbers
from regard.decoding.options import BoundOptions, SearchOptions
from regard.decoding.ranked_beam import ranked_beam
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
    limits, eos_id, penalties = bound.limits, bound.eos_id, bound.penalties
    ranking = Likeliest() if ranking is None else ranking
    ranking.check(limits, beam_size, eos_id)
    rulebook = bound.rulebook()
    is_plain = type(ranking) is Likeliest and not rulebook.rules and bonus is None
    if is_plain and isinstance(step, RankingStep) and why_not() is None:
        return ranked_beam(step, state, bound, beam_size=beam_size, n_best=n_best)
    answers = _Answers(n_best, penalties, limits)
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
        stops = answers.stops(beams.sentences, longer.log_probs.amax(dim=1), length, beam_size)
        if bool(stops.any()):
            answers.close(beams, longer, ranked, stops, length, gains)
            if bool(stops.all()):
                break
        # The rows of the sentences that go on, each beam with the state of the one it extends.
        going = (~stops).nonzero().squeeze(1)
        rows = (ranked.going_origins[going] + going[:, None] * beams.log_probs.shape[1]).flatten()
        if not torch.equal(rows, torch.arange(len(token), device=rows.device)):
            state = state.select(rows)
        beams = longer.select(going)
        token = beams.tokens[:, :, -1].flatten()
    return answers.collect()


class _Answers:
    """The answers met so far, of every sentence of the batch."""

    def __init__(self, n_best: int, penalties: list[float], limits: Int[Tensor, " B"]) -> None:
        self._penalties = penalties
        self._limits = limits
        largest = torch.tensor(penalties, dtype=torch.float64, device=limits.device)
        self._largest_penalty = largest.cummax(0).values[limits]  # (B,)
        # The best scores of finished answers, so that stopping is decided without a loop.
        self._scores = largest.new_full((len(limits), n_best), -torch.inf)
        self._counts = torch.zeros_like(limits)
        self._found: list[list[Hypothesis]] = [[] for _ in limits]

    def finish(
        self, beams: Beams, ranked: RankedBeams, length: int, gains: Float[Tensor, "A W"] | None
    ) -> None:
        """Take the answers that ended with this step; ``gains`` is the bonus of each beginning."""
        if not bool(ranked.ends.any()):
            return
        scores = ranked.log_probs / self._penalties[length]
        if gains is not None:
            gains = gains.gather(1, ranked.origins)
            scores = scores + gains
        scores = scores.masked_fill(~ranked.ends, -torch.inf)
        known = torch.cat([self._scores[beams.sentences], scores], dim=1)
        self._scores[beams.sentences] = known.topk(self._scores.shape[1], dim=1).values
        self._counts[beams.sentences] += ranked.ends.sum(dim=1)
        rows, places = ranked.ends.nonzero(as_tuple=True)
        self._keep(
            beams.sentences[rows],
            beams.tokens[rows, ranked.origins[rows, places]],
            ranked.log_probs[rows, places],
            length,
            None if gains is None else gains[rows, places],
            finished=True,
        )

    def stops(
        self,
        sentences: Int[Tensor, " A"],
        likeliest: Float[Tensor, " A"],
        length: int,
        beam_size: int,
    ) -> Bool[Tensor, " A"]:
        """Finished sentences; ``likeliest`` is their best unfinished log-probability."""
        reachable = likeliest / self._largest_penalty[sentences]
        return (
            (self._counts[sentences] >= beam_size)
            | (self._scores[sentences, -1] >= reachable)
            | (self._limits[sentences] <= length)
        )

    def close(
        self,
        beams: Beams,
        longer: Beams,
        ranked: RankedBeams,
        stops: Bool[Tensor, " A"],
        length: int,
        gains: Float[Tensor, "A W"] | None,
    ) -> None:
        """Fill the places of the sentences that stop with what is unfinished there."""
        check_numbers(longer.log_probs)
        n_best = self._scores.shape[1]
        few = stops & (self._counts[beams.sentences] < n_best)
        # Where nothing could follow and nothing had ended, the last beginnings are the answer.
        stuck = (
            few
            & (longer.log_probs.amax(dim=1) == -torch.inf)
            & (self._counts[beams.sentences] == 0)
        )
        later = None if gains is None else gains.gather(1, ranked.going_origins)
        for these, source, choices, gained in (
            (few, longer, length, later),
            (stuck, beams, length - 1, gains),
        ):
            if bool(these.any()):
                usable = these[:, None] & (source.log_probs != -torch.inf)
                rows, places = usable.nonzero(as_tuple=True)
                self._keep(
                    source.sentences[rows],
                    source.tokens[rows, places],
                    source.log_probs[rows, places],
                    choices,
                    None if gained is None else gained[rows, places],
                    finished=False,
                )

    def _keep(
        self,
        sentences: Int[Tensor, " J"],
        tokens: Int[Tensor, "J T"],
        log_probs: Float[Tensor, " J"],
        length: int,
        gains: Float[Tensor, " J"] | None,
        *,
        finished: bool,
    ) -> None:
        penalty = self._penalties[length]
        gained = [0.0] * len(sentences) if gains is None else gains.tolist()
        for sentence, ids, log_prob, gain in zip(
            sentences.tolist(), tokens.tolist(), log_probs.tolist(), gained, strict=True
        ):
            self._found[sentence].append(
                Hypothesis(
                    tokens=tuple(ids),
                    score=log_prob / penalty + gain,
                    log_prob=log_prob,
                    is_finished=finished,
                )
            )

    def collect(self) -> list[list[Hypothesis]]:
        """The best of each sentence; equal ones in the order in which they were met."""
        return [_best(found, self._scores.shape[1]) for found in self._found]


def _best(answers: list[Hypothesis], count: int) -> list[Hypothesis]:
    return sorted(answers, key=lambda one: (not one.is_finished, -one.score))[:count]
