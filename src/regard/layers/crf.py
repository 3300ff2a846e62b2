"""A linear-chain conditional random field: tags scored together with their neighbours."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.checks import check_count
from regard.errors import ShapeError
from regard.layers.inputs import real_positions

# Score of a forbidden pair of tags: worse than any scores gain, and finite, so that a broken gold
# sequence has a loss and a gradient.
FORBIDDEN = -1e4


class Crf(nn.Module):
    """The probability of a whole tag sequence.

    ``log p(y | x) = Σ e_t(y_t) + Σ T(y_{t−1}, y_t) + b(y_1) + c(y_n) − log Z``: Lafferty et al.
    (2001), https://dl.acm.org/doi/10.5555/645530.655813, over the scores e of a network as in
    Huang et al. (2015), https://arxiv.org/abs/1508.01991. The forward algorithm and Viterbi's loop
    over time only; padding is never read.

    Args:
        num_tags: Tags, K.
        allowed: Which tag may follow which, and which may come first in the last row; None allows
            all. In BIO, I-X follows B-X or I-X only.

    Raises:
        SettingError: ``num_tags`` is not positive.
        ShapeError: ``allowed`` is not boolean, or not (K + 1, K).

    Example:
        >>> crf = Crf(3)
        >>> scores, lengths = torch.zeros(2, 4, 3), torch.tensor([4, 2])
        >>> crf.log_prob(scores, torch.zeros(2, 4, dtype=torch.long), lengths).exp().shape
        torch.Size([2])
        >>> crf.best(torch.eye(3)[None], torch.tensor([3])).tolist()
        [[0, 1, 2]]
    """

    penalties: Tensor

    def __init__(self, num_tags: int, *, allowed: Bool[Tensor, "rows K"] | None = None) -> None:
        super().__init__()
        check_count("num_tags", num_tags)
        is_right = allowed is None or getattr(allowed, "dtype", None) == torch.bool
        if allowed is not None and not (is_right and allowed.shape == (num_tags + 1, num_tags)):
            raise ShapeError(
                f"allowed must be boolean of shape (K + 1, K) = ({num_tags + 1}, {num_tags}); got "
                f"{_dtype_and_shape(allowed)}. Its last row says which tags may come first."
            )
        self.num_tags = num_tags
        self.follow = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.begin = nn.Parameter(torch.zeros(num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))
        penalties = torch.zeros(num_tags + 1, num_tags)
        if allowed is not None:
            penalties = penalties.masked_fill(~allowed, FORBIDDEN)
        self.register_buffer("penalties", penalties, persistent=False)

    def log_prob(
        self, scores: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, " B"]:
        """The log-probability of each row's tags; minus their sum is the loss.

        Args:
            scores: How well each tag fits each position.
            tags: The tags; in padding any number, such as −100.
            lengths: How many positions of each row are real, one at least.

        Raises:
            ShapeError: Shapes or dtypes are others, a length is not from 1 to N, or a tag not from
                0 to K − 1.
        """
        real = self._check(scores, lengths)
        tags = self._check_tags(tags, real)
        scores = scores.to(self.follow.dtype)
        return self._score(scores, tags, lengths) - self._log_partition(scores, lengths)

    @torch.no_grad()
    def best(
        self, scores: Float[Tensor, "B N K"], lengths: Int[Tensor, " B"]
    ) -> Int[Tensor, "B N"]:
        """The likeliest tags of each row, by Viterbi's algorithm; zero in padding.

        Raises:
            ShapeError: Shapes or dtypes are others, or a length is not from 1 to N.
        """
        real = self._check(scores, lengths)
        follow, begin = self._follow(), self._begin()
        B, N, K = scores.shape
        reach = begin + scores[:, 0]  # of the best way to each tag
        stays = torch.arange(K, device=scores.device).expand(B, K)
        came = []
        for t in range(1, N):
            longer, origin = (reach[:, :, None] + follow).max(dim=1)
            reach = torch.where(real[:, t, None], longer + scores[:, t], reach)
            came.append(torch.where(real[:, t, None], origin, stays))
        tag = (reach + self.end).argmax(dim=1, keepdim=True)
        path = [tag]
        for origin in reversed(came):
            tag = origin.gather(1, tag)
            path.append(tag)
        return torch.cat(path[::-1], dim=1).masked_fill(~real, 0)

    def _log_partition(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Log Z: the forward algorithm."""
        follow = self._follow()
        reach = self._begin() + scores[:, 0]  # log of all ways to each tag
        reaches = [reach]
        for score in scores[:, 1:].unbind(1):
            reach = (reach[:, :, None] + follow).logsumexp(dim=1) + score
            reaches.append(reach)
        rows = torch.arange(len(scores), device=scores.device)
        # Each row ends where its padding begins; sums over padding are left behind.
        last = torch.stack(reaches, 1)[rows, lengths - 1]
        return (last + self.end).logsumexp(dim=1)

    def _score(self, scores: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The sum of the scores of the given tags."""
        real = real_positions(lengths, tags.shape[1])
        fits = scores.gather(2, tags[..., None]).squeeze(2)
        follows = self._follow()[tags[:, :-1], tags[:, 1:]]
        last = tags.gather(1, lengths[:, None] - 1).squeeze(1)
        total: Tensor = self._begin()[tags[:, 0]] + self.end[last]
        total = total + fits.masked_fill(~real, 0).sum(1)
        return total + follows.masked_fill(~real[:, 1:], 0).sum(1)

    def _follow(self) -> Tensor:
        return self.follow + self.penalties[:-1]

    def _begin(self) -> Tensor:
        return self.begin + self.penalties[-1]

    def _check(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """Raise ShapeError, or return which positions are real, (B, N)."""
        B, N = (*scores.shape, 0, 0)[:2]
        if scores.shape != (B, N, self.num_tags) or not N or not scores.is_floating_point():
            raise ShapeError(
                "scores must be floats of shape (B, N, K), N at least 1, K = "
                f"num_tags = {self.num_tags}; got {_dtype_and_shape(scores)}."
            )
        if lengths.shape != (B,) or not _is_integral(lengths):
            raise ShapeError(
                f"lengths must be integers of shape (B,) = ({B},); got {_dtype_and_shape(lengths)}."
            )
        if B and not 1 <= int(lengths.min()) <= int(lengths.max()) <= N:
            raise ShapeError(
                f"lengths must be from 1 to N = {N}; "
                f"got {int(lengths.min())} to {int(lengths.max())}."
            )
        return real_positions(lengths, N)

    def _check_tags(self, tags: Tensor, real: Tensor) -> Tensor:
        """Raise ShapeError, or return the tags with zeros in padding."""
        if tags.shape != real.shape or not _is_integral(tags):
            raise ShapeError(
                f"tags must be integers of shape (B, N) = {tuple(real.shape)}; "
                f"got {_dtype_and_shape(tags)}."
            )
        tags = tags.long().masked_fill(~real, 0)
        if len(tags) and not 0 <= int(tags.min()) <= int(tags.max()) < self.num_tags:
            raise ShapeError(
                f"tags must be from 0 to K − 1 = {self.num_tags - 1} within each length; "
                f"got {int(tags.min())} to {int(tags.max())}. Positions without a tag must be "
                "beyond the length, or left out of tags and scores."
            )
        return tags


def _is_integral(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _dtype_and_shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
