"""Rankings of a beam's extensions: the likeliest survive by default."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decoding.rules import Rulebook


@dataclass(frozen=True, slots=True)
class Beams:
    """The unfinished beginnings of the sentences still searched, best first."""

    sentences: Int[Tensor, " A"]  # which of the whole batch
    tokens: Int[Tensor, "A K T"]
    log_probs: Float[Tensor, "A K"]  # -inf for a place without a beginning

    @classmethod
    def start(cls, batch_size: int, device: torch.device) -> "Beams":
        """One empty beginning per sentence."""
        return cls(
            torch.arange(batch_size, device=device),
            torch.zeros(batch_size, 1, 0, dtype=torch.long, device=device),
            torch.zeros(batch_size, 1, dtype=torch.float64, device=device),
        )

    def extend(self, ranked: "RankedBeams") -> "Beams":
        """The beginnings one token longer."""
        origins = ranked.going_origins[:, :, None].expand(-1, -1, self.tokens.shape[2])
        tokens = torch.cat([self.tokens.gather(1, origins), ranked.going_tokens[:, :, None]], dim=2)
        return Beams(self.sentences, tokens, ranked.going_log_probs)

    def select(self, rows: Int[Tensor, " R"]) -> "Beams":
        """The beginnings of these rows, in this order."""
        return Beams(self.sentences[rows], self.tokens[rows], self.log_probs[rows])


@dataclass(frozen=True, slots=True)
class RankedBeams:
    """The best extensions of each sentence: all of the first K, and the K that go on."""

    ends: Bool[Tensor, "A K"]  # which of the first K are ended answers
    origins: Int[Tensor, "A K"]  # the beginning that each extends
    log_probs: Float[Tensor, "A K"]
    going_origins: Int[Tensor, "A K"]
    going_tokens: Int[Tensor, "A K"]
    going_log_probs: Float[Tensor, "A K"]


class Ranking(ABC):
    """How a beam search chooses what goes on.

    Example:
        One that tells which beginnings it chooses from, and takes the likeliest extensions:

        >>> from regard.decoding import Ranking, beam
        >>> class Told(Ranking):
        ...     def rank(self, beams, log_probs, *, beam_size, eos_id, limits):
        ...         print(beams.tokens.tolist())
        ...         return Likeliest().rank(beams, log_probs, beam_size=beam_size, eos_id=eos_id)
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]).log()
        >>> _ = beam(lambda token, state: (table[token], state), Nothing(), batch_size=1, bos_id=2,
        ...     eos_id=0, max_lengths=3, beam_size=2, ranking=Told())
        [[[]]]
        [[[1], [2]]]
    """

    def check(  # noqa: B027  (most can always be had)
        self, limits: Int[Tensor, " B"], beam_size: int, eos_id: int
    ) -> None:
        """Raise if it cannot be had; before the search."""

    def check_rules(  # noqa: B027  (most go with all rules)
        self, rulebook: Rulebook, like: Float[Tensor, "R V"]
    ) -> None:
        """Raise if it and the rules contradict; with the first log-probabilities."""

    @abstractmethod
    def rank(
        self,
        beams: Beams,
        log_probs: Float[Tensor, "R V"],
        *,
        beam_size: int,
        eos_id: int,
        limits: Int[Tensor, " B"],
    ) -> RankedBeams:
        """The extensions of all beginnings that are taken, best first."""


class Likeliest(Ranking):
    """Takes the likeliest extensions."""

    def rank(
        self,
        beams: Beams,
        log_probs: Float[Tensor, "R V"],
        *,
        beam_size: int,
        eos_id: int,
        limits: Int[Tensor, " B"] | None = None,
    ) -> RankedBeams:
        """The best extensions of all beginnings, by log-probability."""
        A, width = beams.log_probs.shape
        # K tokens that do not end a beginning, and its end where that ranks among the first K, are
        # among its best K + 1.
        values, tokens = best(log_probs, min(beam_size + 1, log_probs.shape[1]))
        totals = values.double().view(A, width, -1) + beams.log_probs[:, :, None]
        return take(totals, tokens.view(totals.shape), _by_log_prob, beam_size, eos_id)


def take(
    totals: Float[Tensor, "A W N"],
    tokens: Int[Tensor, "A W N"],
    order: Callable[[Float[Tensor, "A J"]], Int[Tensor, "A J"]],
    beam_size: int,
    eos_id: int,
) -> RankedBeams:
    """The first candidates in an order, and the first of them that go on."""
    _, width, N = totals.shape
    flat, added = totals.flatten(1), tokens.flatten(1)
    missing = max(0, 2 * beam_size - flat.shape[1])
    flat, added = F.pad(flat, (0, missing), value=-torch.inf), F.pad(added, (0, missing))
    columns = order(flat)[:, : 2 * beam_size]
    chosen, added = flat.gather(1, columns), added.gather(1, columns)
    origins = (columns // N).clamp_max(width - 1)
    ends = added == eos_id
    going = ends.byte().sort(dim=1, stable=True).indices[:, :beam_size]
    return RankedBeams(
        ends=(ends & (chosen != -torch.inf))[:, :beam_size],
        origins=origins[:, :beam_size],
        log_probs=chosen[:, :beam_size],
        going_origins=origins.gather(1, going),
        going_tokens=added.gather(1, going),
        # Where all but K candidates end, an ended one may be among these: it does not go on.
        going_log_probs=chosen.masked_fill(ends, -torch.inf).gather(1, going),
    )


def _by_log_prob(totals: Float[Tensor, "A J"]) -> Int[Tensor, "A J"]:
    return totals.sort(dim=1, descending=True, stable=True).indices


def best(
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
