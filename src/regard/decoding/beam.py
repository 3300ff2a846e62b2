"""The best answers among those that keep up with the K likeliest beginnings."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.checks import check_at_least
from regard.decoding.hypothesis import Hypothesis, LengthPenalty, check_numbers, divisors
from regard.decoding.step import Allowed, Limits, StateT, Step, bind_limits
from regard.errors import SettingError


@torch.no_grad()
def beam(
    step: Step[StateT],
    state: StateT,
    *,
    batch_size: int,
    bos_id: int,
    eos_id: int,
    max_lengths: Limits,
    beam_size: int = 4,
    length_penalty: int | float | LengthPenalty = 0.6,
    n_best: int = 1,
    min_length: int = 0,
    forbidden: Iterable[int] = (),
    device: torch.device | None = None,
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
        batch_size: Sentences in the batch, B.
        bos_id: The token every answer starts after.
        eos_id: The token that ends an answer.
        max_lengths: Most tokens of an answer, its end counted; one number, or one per sentence.
        beam_size: Beginnings kept per sentence, K.
        length_penalty: What the log-probability is divided by to give the score; a number is the
            alpha of `Gnmt`. Any penalty must be above zero and never fall with the length.
        n_best: Answers wanted per sentence, at most K.
        min_length: Fewest tokens of an answer, its end not counted.
        forbidden: Tokens never to choose, such as padding.
        device: Where the model runs. None is where ``max_lengths`` is, or the default device.

    Returns:
        For each sentence its answers, all different: the finished ones from the best score down,
        then unfinished ones the same way. At least one, and fewer than ``n_best`` only where the
        search met no more.

    Raises:
        SettingError: A setting is out of range, or the end is forbidden.
        ShapeError: There is not one ``max_lengths`` per sentence.
        RunError: The model gave NaN.

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
    limits = bind_limits(max_lengths, batch_size, device)
    if not batch_size:
        return []
    allowed = Allowed(eos_id, min_length, forbidden, limits.device)
    answers = _Answers(batch_size, n_best, divisors(length_penalty, int(limits.max())), limits)
    beams = _Beams.start(batch_size, limits.device)
    token = torch.full((batch_size,), bos_id, device=limits.device)
    for length in range(1, int(limits.max()) + 1):
        log_probs, state = step(token, state)
        ranked = _rank(beams, allowed.keep(log_probs, length), beam_size, eos_id)
        answers.finish(beams, ranked, length)
        longer = beams.extend(ranked)
        stops = answers.stops(beams.sentences, longer.log_probs[:, 0], length, beam_size)
        if bool(stops.any()):
            answers.close(beams, longer, stops, length)
            if bool(stops.all()):
                break
        # The rows of the sentences that go on, each beam with the state of the one it extends.
        going = (~stops).nonzero().squeeze(1)
        width = beams.log_probs.shape[1]
        rows = (ranked.going_origins[going] + going[:, None] * width).flatten()
        if not torch.equal(rows, torch.arange(len(token), device=rows.device)):
            state = state.select(rows)
        beams = longer.select(going)
        token = beams.tokens[:, :, -1].flatten()
    return answers.collect()


@dataclass(frozen=True, slots=True)
class _Beams:
    """The unfinished beginnings of the sentences still searched, likeliest first."""

    sentences: Int[Tensor, " A"]  # which of the whole batch
    tokens: Int[Tensor, "A K T"]
    log_probs: Float[Tensor, "A K"]  # -inf for a place without a beginning

    @classmethod
    def start(cls, batch_size: int, device: torch.device) -> "_Beams":
        """One empty beginning per sentence."""
        return cls(
            torch.arange(batch_size, device=device),
            torch.zeros(batch_size, 1, 0, dtype=torch.long, device=device),
            torch.zeros(batch_size, 1, dtype=torch.float64, device=device),
        )

    def extend(self, ranked: "_Ranked") -> "_Beams":
        """The beginnings one token longer."""
        origins = ranked.going_origins[:, :, None].expand(-1, -1, self.tokens.shape[2])
        tokens = torch.cat([self.tokens.gather(1, origins), ranked.going_tokens[:, :, None]], dim=2)
        return _Beams(self.sentences, tokens, ranked.going_log_probs)

    def select(self, rows: Int[Tensor, " R"]) -> "_Beams":
        return _Beams(self.sentences[rows], self.tokens[rows], self.log_probs[rows])


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The best extensions of each sentence: all of the first K, and the K that go on."""

    ends: Bool[Tensor, "A K"]  # which of the first K are ended answers
    origins: Int[Tensor, "A K"]  # the beginning that each extends
    log_probs: Float[Tensor, "A K"]
    going_origins: Int[Tensor, "A K"]
    going_tokens: Int[Tensor, "A K"]
    going_log_probs: Float[Tensor, "A K"]


def _rank(beams: _Beams, log_probs: Float[Tensor, "R V"], beam_size: int, eos_id: int) -> _Ranked:
    """The best extensions of all beginnings, by log-probability."""
    A, width = beams.log_probs.shape
    # K tokens that do not end a beginning, and its end where that ranks among the first K, are
    # among its best K + 1.
    values, tokens = _best(log_probs, min(beam_size + 1, log_probs.shape[1]))
    totals = (
        values.double().view(A, width, values.shape[1]) + beams.log_probs[:, :, None]
    ).flatten(1)
    tokens = tokens.reshape(A, -1)
    missing = max(0, 2 * beam_size - totals.shape[1])
    totals, tokens = F.pad(totals, (0, missing), value=-torch.inf), F.pad(tokens, (0, missing))
    totals, order = totals.sort(dim=1, descending=True, stable=True)
    totals, order = totals[:, : 2 * beam_size], order[:, : 2 * beam_size]
    tokens = tokens.gather(1, order)
    origins = (order // (values.shape[1])).clamp_max(width - 1)
    ends = tokens == eos_id
    going = ends.byte().sort(dim=1, stable=True).indices[:, :beam_size]
    return _Ranked(
        ends=(ends & (totals != -torch.inf))[:, :beam_size],
        origins=origins[:, :beam_size],
        log_probs=totals[:, :beam_size],
        going_origins=origins.gather(1, going),
        going_tokens=tokens.gather(1, going),
        # Where all but K candidates end, an ended one may be among these: it does not go on.
        going_log_probs=totals.masked_fill(ends, -torch.inf).gather(1, going),
    )


def _best(
    log_probs: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"]]:
    """The ``count`` likeliest tokens of each row; of equal ones those with the lowest ids."""
    values, tokens = log_probs.topk(min(count + 1, log_probs.shape[1]), dim=1)
    # topk leaves the order of equal values open, which a stable sort does not.
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] != -torch.inf)).any(dim=1)
    if bool(tied.any()):
        exact = log_probs[tied].sort(dim=1, descending=True, stable=True)
        values[tied] = exact.values[:, : values.shape[1]]
        tokens[tied] = exact.indices[:, : tokens.shape[1]]
    return values[:, :count], tokens[:, :count]


class _Answers:
    """The answers met so far, of every sentence of the batch."""

    def __init__(
        self, batch_size: int, n_best: int, penalties: list[float], limits: Int[Tensor, " B"]
    ) -> None:
        self._penalties = penalties
        self._limits = limits
        largest = torch.tensor(penalties, dtype=torch.float64, device=limits.device)
        self._largest_penalty = largest.cummax(0).values[limits]  # (B,)
        # The best scores of finished answers, so that stopping is decided without a loop.
        self._scores = largest.new_full((batch_size, n_best), -torch.inf)
        self._counts = torch.zeros_like(limits)
        self._found: list[list[Hypothesis]] = [[] for _ in range(batch_size)]

    def finish(self, beams: _Beams, ranked: _Ranked, length: int) -> None:
        """Take the answers that ended with this step."""
        if not bool(ranked.ends.any()):
            return
        scores = (ranked.log_probs / self._penalties[length]).masked_fill(~ranked.ends, -torch.inf)
        known = torch.cat([self._scores[beams.sentences], scores], dim=1)
        self._scores[beams.sentences] = known.topk(self._scores.shape[1], dim=1).values
        self._counts[beams.sentences] += ranked.ends.sum(dim=1)
        rows, places = ranked.ends.nonzero(as_tuple=True)
        self._keep(
            beams.sentences[rows],
            beams.tokens[rows, ranked.origins[rows, places]],
            ranked.log_probs[rows, places],
            length,
            finished=True,
        )

    def stops(
        self,
        sentences: Int[Tensor, " A"],
        likeliest: Float[Tensor, " A"],
        length: int,
        beam_size: int,
    ) -> Bool[Tensor, " A"]:
        """Which sentences are done; ``likeliest`` is their best unfinished log-probability."""
        reachable = likeliest / self._largest_penalty[sentences]
        return (
            (self._counts[sentences] >= beam_size)
            | (self._scores[sentences, -1] >= reachable)
            | (self._limits[sentences] <= length)
        )

    def close(self, beams: _Beams, longer: _Beams, stops: Bool[Tensor, " A"], length: int) -> None:
        """Fill the places of the sentences that stop with what is unfinished there."""
        check_numbers(longer.log_probs)
        n_best = self._scores.shape[1]
        few = stops & (self._counts[beams.sentences] < n_best)
        # Where nothing could follow and nothing had ended, the last beginnings are the answer.
        stuck = few & (longer.log_probs[:, 0] == -torch.inf) & (self._counts[beams.sentences] == 0)
        for these, source, choices in ((few, longer, length), (stuck, beams, length - 1)):
            if bool(these.any()):
                usable = these[:, None] & (source.log_probs != -torch.inf)
                rows, places = usable.nonzero(as_tuple=True)
                self._keep(
                    source.sentences[rows],
                    source.tokens[rows, places],
                    source.log_probs[rows, places],
                    choices,
                    finished=False,
                )

    def _keep(
        self,
        sentences: Int[Tensor, " J"],
        tokens: Int[Tensor, "J T"],
        log_probs: Float[Tensor, " J"],
        length: int,
        *,
        finished: bool,
    ) -> None:
        penalty = self._penalties[length]
        for sentence, ids, log_prob in zip(
            sentences.tolist(), tokens.tolist(), log_probs.tolist(), strict=True
        ):
            self._found[sentence].append(
                Hypothesis(
                    tokens=tuple(ids),
                    score=log_prob / penalty,
                    log_prob=log_prob,
                    finished=finished,
                )
            )

    def collect(self) -> list[list[Hypothesis]]:
        """The best of each sentence; equal ones in the order in which they were met."""
        n_best = self._scores.shape[1]
        return [
            sorted(found, key=lambda one: (not one.finished, -one.score))[:n_best]
            for found in self._found
        ]
