"""A beam in groups that keep away from each other's words."""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_at_least, check_divides
from regard.decoding.ranking import Beams, Likeliest, RankedBeams, Ranking


@dataclass(frozen=True, slots=True)
class Diverse(Ranking):
    """Groups of a beam, each a search of its own that avoids the tokens of those before it.

    At every step group g ranks its extensions by ``log p − strength · c``, where c is how often the
    groups before it have just gone on with the token: Vijayakumar et al. (2018),
    https://arxiv.org/abs/1610.02424, section 4, with the Hamming distance. What is subtracted does
    not add up, and is in no answer's score. The end of an answer is nobody's to avoid.

    Ask for as many answers as the beam is wide: fewer are the best of all groups, and may all come
    from one. An answer that several groups find comes once.

    Attributes:
        num_groups: Groups; divides the beam's size.
        strength: How much a token costs that a group before has chosen; 0 makes all groups alike.

    Example:
        The two groups begin with different words, though one is much likelier:

        >>> from regard.decoding import beam
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 0.9, 0.1]]).log()
        >>> answers = beam(lambda token, state: (table[token], state), Nothing(), batch_size=1,
        ...     bos_id=2, eos_id=0, max_lengths=3, beam_size=2, n_best=2, ranking=Diverse(2, 3.0))
        >>> [one.tokens for one in answers[0]]
        [(1,), (2, 1)]
    """

    num_groups: int
    strength: int | float = 0.5

    def __post_init__(self) -> None:
        check_at_least("num_groups", self.num_groups, 1)
        check_at_least("strength", self.strength, 0)

    def check(self, limits: Int[Tensor, " B"], beam_size: int, eos_id: int) -> None:
        """Raise unless the groups divide the beam."""
        check_divides("num_groups", self.num_groups, "beam_size", beam_size)

    def rank(
        self,
        beams: Beams,
        log_probs: Float[Tensor, "R V"],
        *,
        beam_size: int,
        eos_id: int,
        limits: Int[Tensor, " B"],
    ) -> RankedBeams:
        """The best extensions of each group; the groups of a sentence are rows side by side."""
        A, width = beams.log_probs.shape
        by_beginning = log_probs.double().view(A, width, -1)
        sentences = beams.sentences // self.num_groups
        V = by_beginning.shape[2]
        chosen = by_beginning.new_zeros(int(sentences.max()) + 1, V)  # how often, by those before
        places, parts = [], []
        for group in range(self.num_groups):
            rows = (beams.sentences % self.num_groups == group).nonzero().squeeze(1)
            if not len(rows):
                continue
            cost = self.strength * chosen[sentences[rows]]
            lower = by_beginning[rows] - cost[:, None]
            ranked = Likeliest().rank(
                beams.select(rows), lower.flatten(0, 1), beam_size=beam_size, eos_id=eos_id
            )
            ranked = replace(
                ranked,
                going_log_probs=ranked.going_log_probs + cost.gather(1, ranked.going_tokens),
            )
            owners = sentences[rows][:, None].expand_as(ranked.going_tokens)
            is_real = (ranked.going_log_probs != -torch.inf).double()
            chosen.index_put_((owners, ranked.going_tokens), is_real, accumulate=True)
            places.append(rows)
            parts.append(ranked)
        order = torch.cat(places).argsort()
        columns = (
            torch.cat([getattr(p, f.name) for p in parts])[order] for f in fields(RankedBeams)
        )
        return RankedBeams(*columns)
