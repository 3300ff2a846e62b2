"""Weights at hand, whatever made them, as what a page shows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import DataError, SettingError, ShapeError
from regard.viewer.parts import Array, OneAttention, array_of, pooled_by

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

    Weights = Tensor | ArrayLike | Sequence[Tensor]

_MAP = 64  # buckets along a side
_TOP = 8  # keys kept of a query


class GivenWeights:
    """Weights as what ``regard.watch`` sees: a summary for each layer, and exact rows."""

    def __init__(self, weights: "Weights", *, is_cross: bool | None = None) -> None:
        """See that these are weights.

        Args:
            weights: (N, M), (H, N, M) or (L, H, N, M): a tensor, an array or nested lists.
            is_cross: Whether queries and keys are of two texts; None goes by their numbers.

        Raises:
            ShapeError: They have fewer axes, or more.
            DataError: One is below zero, or not finite.
        """
        self._weights = _checked(weights)
        L, H, N, M = self._weights.shape
        self.kind = "cross" if (N != M if is_cross is None else is_cross) else "encoder"
        self._seen = [
            OneAttention(self.kind, layer, tuple(range(H)), _Summary.of(self._weights[layer]))  # type: ignore[arg-type]
            for layer in range(L)
        ]

    @property
    def sizes(self) -> tuple[int, int]:
        """N and M."""
        return self._weights.shape[-2], self._weights.shape[-1]

    def __iter__(self) -> Iterator[OneAttention]:
        return iter(self._seen)

    def rows(self, layer: int, queries: Iterable[int], kind: str) -> Array:
        """The weights of chosen queries of a layer, (H, chosen, M).

        Raises:
            SettingError: There are none of this kind.
        """
        if kind != self.kind:
            raise SettingError(f"kind must be {self.kind!r}; got {kind!r}.")
        found: Array = self._weights[layer][:, list(queries)]
        return found


@dataclass(frozen=True, slots=True)
class _Summary:
    """As much of ``regard.Summary`` as a page needs, in NumPy, of weights (H, N, M)."""

    arrays: Mapping[str, Array]
    bucket: tuple[int, int]
    start: tuple[int, int] = (0, 0)

    def tensors(self) -> Mapping[str, Array]:
        return self.arrays

    @classmethod
    def of(cls, weights: Array) -> "_Summary":
        _, N, M = weights.shape
        logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
        # The last query lines up with the last key.
        back = np.abs(np.arange(M) - np.arange(N)[:, None] - (M - N))
        top = np.argsort(-weights, axis=-1, kind="stable")[..., :_TOP]
        best = np.take_along_axis(weights, top, axis=-1)
        bucket = (_bucket(N), _bucket(M))
        arrays = {
            "entropy": -(weights * logs).sum(-1),
            "distance": (weights * back).sum(-1),
            "first": weights[..., 0],
            "received": weights.sum(-2),
            "counts": (weights.sum(-1) > 0).astype(float),
            "pooled": pooled_by(weights, bucket),
            "top_keys": np.where(best > 0, top, -1).astype(float),
            "top_weights": best,
        }
        return cls(arrays, bucket)


def _checked(weights: "Weights") -> Array:
    """The weights as (L, H, N, M)."""
    try:
        found = _stacked(weights)
    except ValueError:  # lists of several lengths
        raise ShapeError("weights must have rows of one length; got several.") from None
    if not 2 <= found.ndim <= 4 or not found.size:
        raise ShapeError(
            "weights must be (N, M), (H, N, M) or (L, H, N, M), and hold a number at least; got "
            f"shape {found.shape}."
        )
    bad = found[~np.isfinite(found) | (found < 0)]
    if bad.size:
        raise DataError(
            f"weights must be finite and at least 0; got {bad[0]:.4g}. Of scores, show the softmax."
        )
    return found.reshape((1,) * (4 - found.ndim) + found.shape)


def _stacked(weights: "Weights") -> Array:
    if not isinstance(weights, list | tuple):
        return array_of(weights)
    return np.stack([_stacked(part) for part in weights]) if weights else np.zeros(0)


def _bucket(size: int) -> int:
    """The smallest power of two of places that leaves at most 64 buckets."""
    bucket = 1
    while -(-size // bucket) > _MAP:
        bucket *= 2
    return bucket
