"""Weightings: how a row of scores becomes a row of weights."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.rules import lengths as within
from regard.checks import check_finite
from regard.errors import ShapeError

Lengths = Int[Tensor, "..."] | Sequence[int] | int


class Weighting(ABC):
    """A function from a row of scores to a row of weights.

    Attributes:
        ranks_like_scores: Whether a key with a higher score never has less weight.
        compiled_as: Its name in the loops of ``kernels.attention.weightings`` that do the same as
            ``rows`` and ``gradient``; None if there are none.

    Example:
        All visible keys weigh alike:

        >>> from regard.attention import Weighting, lengths, weights
        >>> class Mean(Weighting):
        ...     def rows(self, scores):
        ...         visible = (scores > -torch.inf).to(scores.dtype)
        ...         return visible / visible.sum(-1, keepdim=True).clamp_min(1)
        ...     def gradient(self, weights, grad):
        ...         return torch.zeros_like(grad)
        >>> weights(torch.ones(1, 2), torch.ones(5, 2), mask=lengths(4), weighting=Mean())
        tensor([[0.2500, 0.2500, 0.2500, 0.2500, 0.0000]])
    """

    __slots__ = ()

    ranks_like_scores: ClassVar[bool] = False
    compiled_as: ClassVar[str | None] = None

    @abstractmethod
    def rows(self, scores: Float[Tensor, "*b n M"]) -> Float[Tensor, "*b n M"]:
        """The weights of whole rows of scores; a row of −inf gives zeros."""

    @abstractmethod
    def gradient(
        self, weights: Float[Tensor, "*b n M"], grad: Float[Tensor, "*b n M"]
    ) -> Float[Tensor, "*b n M"]:
        """The gradient of the scores, from the weights and their gradient."""


@dataclass(frozen=True, slots=True)
class Softmax(Weighting):
    """``exp(score) / sum of exp(scores)``.

    Attributes:
        sink: A number, or a tensor, () or (H,), such as a learned one per head: the score of a key
            that is always there and whose value is zero. Weights then sum to less than one, as in
            Xiao et al. (2024), https://arxiv.org/abs/2309.17453; with 0 this is "softmax plus one".

    Example:
        >>> import torch
        >>> from regard.attention import Softmax, weights
        >>> query, keys = torch.ones(1, 1), torch.tensor([[1.0], [0.6], [-1.0]])
        >>> weights(query, keys, weighting=Softmax(sink=0.0))
        tensor([[0.4601, 0.3084, 0.0623]])
    """

    ranks_like_scores = True

    sink: float | Float[Tensor, "..."] | None = None

    def __post_init__(self) -> None:
        if self.sink is not None and not isinstance(self.sink, Tensor):
            check_finite("sink", self.sink)

    def rows(self, scores: Tensor) -> Tensor:
        if not scores.shape[-1]:
            return scores
        empty = scores.amax(dim=-1, keepdim=True) == float("-inf")
        if not empty.is_cuda and not bool(empty.any()):
            return torch.softmax(scores, dim=-1)
        return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)

    def gradient(self, weights: Tensor, grad: Tensor) -> Tensor:
        return weights * (grad - (weights * grad).sum(dim=-1, keepdim=True))


@dataclass(frozen=True, slots=True)
class Sparsemax(Weighting):
    """The nearest row of probabilities: Martins & Astudillo (2016), algorithm 1.

    https://arxiv.org/abs/1602.02068
    A key whose score is far enough below the best gets a weight of exactly zero.

    Example:
        >>> import torch
        >>> from regard.attention import Sparsemax, weights
        >>> query, keys = torch.ones(1, 1), torch.tensor([[1.0], [0.6], [-1.0]])
        >>> weights(query, keys, weighting=Sparsemax())
        tensor([[0.7000, 0.3000, 0.0000]])
    """

    ranks_like_scores = True
    compiled_as = "sparsemax"

    def rows(self, scores: Tensor) -> Tensor:
        below, empty = _below_the_best(scores)
        ranked = below.sort(dim=-1, descending=True).values
        ranks = _counting_from_one(ranked)
        sums = ranked.cumsum(dim=-1) - 1
        size = (ranks * ranked > sums).sum(dim=-1, keepdim=True).clamp_min(1)
        threshold = sums.gather(-1, size - 1) / size
        return (below - threshold).clamp_min(0).masked_fill(empty, 0.0)

    def gradient(self, weights: Tensor, grad: Tensor) -> Tensor:
        support = (weights > 0).to(grad.dtype)
        mean = (support * grad).sum(-1, keepdim=True) / support.sum(-1, keepdim=True).clamp_min(1)
        return support * (grad - mean)


@dataclass(frozen=True, slots=True)
class Entmax15(Weighting):
    """Between softmax and sparsemax: α-entmax with α = 1.5, Peters, Niculae & Martins (2019).

    ``max(0, score / 2 − τ)²`` with the τ that makes a row sum to one, by the exact algorithm of
    https://arxiv.org/abs/1905.05702, section 3.

    Example:
        >>> import torch
        >>> from regard.attention import Entmax15, weights
        >>> query, keys = torch.ones(1, 1), torch.tensor([[1.0], [0.6], [-1.0]])
        >>> weights(query, keys, weighting=Entmax15())
        tensor([[0.6400, 0.3600, 0.0000]])
    """

    ranks_like_scores = True
    compiled_as = "entmax15"

    def rows(self, scores: Tensor) -> Tensor:
        below, empty = _below_the_best(scores / 2)
        ranked = below.sort(dim=-1, descending=True).values
        ranks = _counting_from_one(ranked)
        mean = ranked.cumsum(dim=-1) / ranks
        spread = ranked.square().cumsum(dim=-1) - ranks * mean.square()
        thresholds = mean - ((1 - spread) / ranks).clamp_min(0).sqrt()
        size = (thresholds <= ranked).sum(dim=-1, keepdim=True).clamp_min(1)
        threshold = thresholds.gather(-1, size - 1)
        # Running sums over long rows round a digit away; a step of Newton's method brings it back.
        roots = (below - threshold).clamp_min(0)
        excess = roots.square().sum(dim=-1, keepdim=True) - 1
        threshold = threshold + excess / (2 * roots.sum(dim=-1, keepdim=True))
        return (below - threshold).clamp_min(0).square().masked_fill(empty, 0.0)

    def gradient(self, weights: Tensor, grad: Tensor) -> Tensor:
        slope = weights.sqrt()
        total = slope.sum(-1, keepdim=True)
        mean = (slope * grad).sum(-1, keepdim=True) / torch.where(total == 0, 1, total)
        return slope * (grad - mean)


@dataclass(frozen=True, slots=True)
class Hard(Weighting):
    """Hard attention, all weight on the best key, the first of several: Xu et al. (2015).

    Its scores get no gradient. To train them, draw a key by ``sample_key`` and weigh its
    log-probability by a reward.

    Example:
        >>> import torch
        >>> from regard.attention import Hard, weights
        >>> query, keys = torch.ones(1, 1), torch.tensor([[1.0], [0.6], [-1.0]])
        >>> weights(query, keys, weighting=Hard())
        tensor([[1., 0., 0.]])
    """

    ranks_like_scores = True

    def rows(self, scores: Tensor) -> Tensor:
        top, _ = scores.max(dim=-1, keepdim=True)
        is_best = scores == top
        is_first = is_best & (is_best.cumsum(dim=-1) == 1)
        # A NaN is no best; it must be seen in the weights.
        weights = is_first.to(scores.dtype).masked_fill(top.isnan(), float("nan"))
        return weights.masked_fill(top == float("-inf"), 0.0)

    def gradient(self, weights: Tensor, grad: Tensor) -> Tensor:
        return torch.zeros_like(grad)


def masked_softmax(
    scores: Float[Tensor, "*batch N M"],
    lengths: Lengths | Mask | Bool[Tensor, "..."] | None = None,
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch N M"]:
    """The softmax of each row of scores over its first or its visible keys; others get zero.

    ``exp(score) / sum of exp(scores)`` of the keys within the length: Zhang et al., Dive into Deep
    Learning, https://d2l.ai/chapter_attention-mechanisms-and-transformers/, "Masked Softmax
    Operation". ``attend`` does the same with ``mask=lengths(n)`` and never makes the matrix.

    A row of length zero gets zeros; with a large negative number in place of masked scores, it
    would get equal weights. Masked scores, NaN too, reach neither weights nor gradients.

    Args:
        scores: One row per query; of four axes or more, the third from the end is of heads.
        lengths: How many keys are real, as ``lengths`` of a mask has it: one number, one per batch
            row (B,), or one per batch row and query (B, N). Or a mask. None is a plain softmax.
        mask: Which keys a query may look at: a rule such as ``causal()``, or True where it may,
            broadcasting to (*batch, N, M). Lengths hide others besides.

    Returns:
        One row of weights per query; a row sums to one, or to zero if nothing is visible.

    Raises:
        ShapeError: ``lengths`` are not of integers, fit no batch, or are beyond the keys; the mask
            does not broadcast; or scores have fewer than two axes.

    Example:
        >>> masked_softmax(torch.zeros(2, 1, 4), [2, 3])
        tensor([[[0.5000, 0.5000, 0.0000, 0.0000]],
        <BLANKLINE>
                [[0.3333, 0.3333, 0.3333, 0.0000]]])
        >>> masked_softmax(torch.zeros(1, 2), mask=torch.tensor([[False, True]]))
        tensor([[0., 1.]])
    """
    if not isinstance(scores, Tensor) or scores.dim() < 2:
        kind = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ShapeError(f"scores must be a tensor of shape (*batch, N, M); got {kind}.")
    *batch, N, M = scores.shape
    axes, heads = (batch[:-1], batch[-1]) if len(batch) > 1 else (batch, None)
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    wide = wide.reshape(prod(axes), heads or 1, N, M)
    if isinstance(lengths, Mask) or (isinstance(lengths, Tensor) and lengths.dtype == torch.bool):
        first, lengths = as_mask(lengths), None
        mask = first if mask is None else first & as_mask(mask)
    if lengths is not None:
        wide = _hide(wide, within(lengths).bind(prod(axes), heads or 1, N, M, scores.device))
    if mask is not None:
        wide = _hide(wide, as_mask(mask).bind(tuple(axes), heads, N, M, scores.device))
    return Softmax().rows(wide).reshape(scores.shape).to(scores.dtype)


def _hide(scores: Float[Tensor, "B H N M"], mask: BoundMask) -> Float[Tensor, "B H N M"]:
    hidden = mask.whole_hidden
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def apply_sink(
    sink: Float[Tensor, "..."], out: Float[Tensor, "*b N E"], lse: Float[Tensor, "*b N"]
) -> tuple[Float[Tensor, "*b N E"], Float[Tensor, "*b N"]]:
    """Scale the context for the sink of a softmax, and add the sink to the log-sum-exp."""
    # Of nothing, nothing is left, even beside a sink of −inf.
    remaining = torch.sigmoid(
        (lse - sink).masked_fill(lse == float("-inf"), float("-inf"))
    ).unsqueeze(-1)
    return (out * remaining).to(out.dtype), torch.logaddexp(lse, sink)


def _below_the_best(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Distance of each score below its row's best, at most 2, and which rows are empty."""
    top = scores.amax(dim=-1, keepdim=True)
    empty = top == float("-inf")
    # Those below −2 get no weight from any mapping here, and −2 does no harm in sums, as −∞ would.
    return (scores - top.masked_fill(empty, 0.0)).clamp_min(-2), empty


def _counting_from_one(rows: Tensor) -> Tensor:
    return torch.arange(1, rows.shape[-1] + 1, dtype=rows.dtype, device=rows.device)
