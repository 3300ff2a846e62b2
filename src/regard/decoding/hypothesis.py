"""One hypothesis of a search, its alignment, and the penalty that lets long ones compete."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from regard.attention.inspect.alignment import Link, links_from_weights
from regard.bounds import bounded
from regard.errors import RunError
from regard.text import PairTokenizer, Piece


@dataclass(frozen=True, slots=True)
class Alignment:
    """Attention of each output token over its source."""

    source: str
    tokens: tuple[int, ...]
    weights: Float[Tensor, "T S"]
    source_length: int
    tokenizer: PairTokenizer = field(repr=False)
    is_copying: bool = False

    @property
    def source_pieces(self) -> list[Piece]:
        """The source's tokens with their positions in it."""
        return self.tokenizer.source.pieces(self.source)

    @property
    def output_pieces(self) -> list[Piece]:
        """The output's tokens with their positions in it."""
        return pieces_of(*self.tokenizer.target.decode_with_spans(self.tokens), self.tokens)

    def copied_from(self) -> list[int | None]:
        """The source token that each output token may be a copy of: the same, looked at most."""
        positions: dict[int, list[int]] = {}
        for position, piece in enumerate(self.source_pieces):
            positions.setdefault(piece.id, []).append(position)
        return [
            max(positions[token], key=row.__getitem__) if token in positions else None
            for token, row in zip(self.tokens, self.weights.tolist(), strict=True)
        ]

    def copies(self) -> list[tuple[str, int | None]]:
        """The output in stretches, each with where it was copied from in one piece."""
        source, output, origins = self.source_pieces, self.output_pieces, self.copied_from()
        text, _ = self.tokenizer.target.decode_with_spans(self.tokens)
        stretches: list[tuple[str, int | None]] = []
        first = 0
        for number, origin in enumerate(origins):
            after = origins[number + 1] if number + 1 < len(origins) else -1
            if after != (None if origin is None else origin + 1):
                stretch = text[output[first].start : output[number].end]
                copied = origins[first]
                stretches.append((stretch, None if copied is None else source[copied].start))
                first = number + 1
        return stretches

    def links(self) -> list[Link]:
        """The source token that each output token looks at most; none where that is the end."""
        return [link for link in links_from_weights(self.weights) if link[0] < self.source_length]


def pieces_of(text: str, spans: Sequence[tuple[int, int]], ids: Sequence[int]) -> list[Piece]:
    """The tokens of an output with their positions in its text; one without any is shown as ␣."""
    return [
        Piece(text[start:end] or "␣", token, start, end)
        for token, (start, end) in zip(ids, spans, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One output, from the search that met it to the JSON that holds it.

    Attributes:
        tokens: Its token ids, without the begin and the end.
        score: Rank of hypotheses: ``log_prob`` over the length penalty.
        log_prob: Sum of the log-probabilities of its tokens, and of the end if it has one.
        is_finished: Whether the model ended it; False if it was cut at the longest length allowed.
        text: Its text, once its task has decoded it.
        alignment: Attention of its tokens over the source, where that was recorded; None of an
            empty text, of one in parts, and of all but the best.

    Example:
        >>> import torch
        >>> from regard.decoding import greedy
        >>> class Nothing:
        ...     def select(self, rows):
        ...         return self
        >>> table = torch.tensor([[1.0, 0, 0], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]).log()
        >>> (one,) = greedy(lambda token, state: (table[token], state), Nothing(), batch_size=1,
        ...     bos_id=2, eos_id=0, max_lengths=5)
        >>> one.tokens, one.is_finished, round(one.log_prob, 3), round(one.score, 3)
        ((1,), True, -0.916, -0.835)
    """

    tokens: tuple[int, ...]
    score: float
    log_prob: float
    is_finished: bool
    text: str = ""
    alignment: Alignment | None = field(default=None, compare=False, repr=False)


def divisors(alpha: float, longest: int) -> list[float]:
    """Length penalty of every length, ``((5 + length) / 6) ** alpha``: Wu et al. (2016), eq. 14."""
    # https://arxiv.org/abs/1609.08144; zero compares plain log-probabilities, 0.6 is usual. The end
    # of the sentence is one of the choices that a length counts.
    alpha = bounded("length_penalty", alpha)
    return [float(((5 + max(length, 1)) / 6) ** alpha) for length in range(longest + 1)]


def check_numbers(log_probs: Float[Tensor, "*any"]) -> None:
    """Raise if the model's log-probabilities led to something that is not a number."""
    if bool(log_probs.isnan().any()):
        raise RunError(
            "log_probs must be numbers; got NaN. The model's weights are damaged, or its "
            "training diverged: use an earlier checkpoint."
        )
