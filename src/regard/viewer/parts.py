"""Attention as plain arrays of one text: a summary without its padding, or weights at hand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import DataError, SettingError, ShapeError
from regard.viewer.example import Head, Layer
from regard.viewer.layer_summary import AXES, Kind

if TYPE_CHECKING:
    from torch import Tensor

    from regard.attention.inspect.head_scores import HeadScores
    from regard.attention.inspect.summary import Summary

    Weights = Tensor | ArrayLike | Sequence[Tensor]

Array = NDArray[np.float64]
# (example, kind, layer, head, queries) -> weights (queries, keys), or None where there are none.
RowSource = Callable[[int, str, Layer, Head, Sequence[int]], NDArray[np.floating] | None]

_MAP = 64  # buckets along a side
_TOP = 8  # keys kept of a query


class Attention(Protocol):
    """One attention of a model: ``regard.watch`` gives a sequence of them."""

    @property
    def kind(self) -> str:
        """``encoder``, ``decoder`` or ``cross``."""

    @property
    def layer(self) -> int:
        """Counted from 0."""

    @property
    def heads(self) -> tuple[int, ...]:
        """The numbers of the heads in the summary."""

    @property
    def summary(self) -> "Summary":
        """Attention of the heads."""


@dataclass(frozen=True, slots=True)
class OneAttention:
    """A summary as the attention of a layer, for ``example_of``.

    Attributes:
        kind: ``encoder``, ``decoder`` or ``cross``.
        layer: Counted from 0.
        heads: The numbers of its heads.
        summary: Summary of their weights.
        scores: How much of it is on keys of known kinds, or None.
    """

    kind: str
    layer: int
    heads: tuple[int, ...]
    summary: "Summary"
    scores: "HeadScores | None" = None

    def of_heads(self, heads: Sequence[int]) -> "OneAttention":
        """Select some of the heads, by their indices."""
        chosen = list(heads)
        return replace(
            self,
            heads=tuple(self.heads[head] for head in chosen),
            summary=self.summary.of_heads(chosen),
            scores=None if self.scores is None else self.scores.of_heads(chosen),
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One attention's arrays of one text, as in its summary; heads first."""

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    spans: tuple[slice, slice]  # the tokens among the batch's queries and keys
    entropy: Array  # (H, N)
    distance: Array
    first: Array
    received: Array  # (H, M)
    counts: Array
    pooled: Array  # (H, R, C), only buckets with tokens
    bucket: tuple[int, int]  # queries and keys in a bucket
    start: tuple[int, int]  # positions before the first token in its bucket
    top_keys: Array  # (H, N, K), counted from the first token
    top_weights: Array
    scores: Mapping[str, Sequence[float | None]]  # of heads, by the kind of key: see head_scores

    @property
    def name(self) -> tuple[str, int]:
        """Kind and layer."""
        return self.kind, self.layer

    @property
    def sizes(self) -> tuple[int, int]:
        """N and M."""
        return self.entropy.shape[1], self.received.shape[1]

    @classmethod
    def of(cls, one: Attention, sizes: Mapping[str, int], row: int, padding: str) -> "Part":
        """Cut the attention of a row of the batch to the tokens of each side."""
        arrays = {name: array_of(value) for name, value in one.summary.tensors().items()}
        dims = {"pooled": 2, "top_keys": 2, "top_weights": 2}
        arrays = {
            name: _of_row(value, row, dims.get(name, 1), one) for name, value in arrays.items()
        }
        sides = (arrays["entropy"].shape[1], arrays["received"].shape[1])
        wanted = [sizes[side] for side in AXES[one.kind]]
        cut = []
        for size, tokens, axis in zip(sides, wanted, ("queries", "keys"), strict=True):
            if tokens > size:
                raise DataError(
                    f"tokens must be at most the {size} {axis} of the {one.kind} attention; got "
                    f"{tokens}."
                )
            cut.append(slice(size - tokens, size) if padding == "left" else slice(0, tokens))
        queries, keys = cut
        pooled, start = _pooled(arrays["pooled"], one.summary, (queries, keys))
        top = arrays["top_keys"][:, queries]
        return cls(
            kind=one.kind,  # type: ignore[arg-type]
            layer=one.layer,
            heads=tuple(one.heads),
            spans=(queries, keys),
            **{name: arrays[name][:, queries] for name in ("entropy", "distance", "first")},
            received=arrays["received"][:, keys],
            counts=arrays["counts"][:, queries],
            pooled=pooled,
            bucket=one.summary.bucket,
            start=start,
            top_keys=np.where(top < 0, -1, np.maximum(top - keys.start, -1)),
            top_weights=arrays["top_weights"][:, queries],
            scores=_scores(one),
        )


def _scores(one: Attention) -> dict[str, Sequence[float | None]]:
    """Scores of the heads, where they were made; the share of the first key is in the summary."""
    scores = getattr(one, "scores", None)
    if scores is None:
        return {}
    # Positions in two texts are not comparable, even where there are as many in both.
    names = ("diagonal", "punctuation") if one.kind == "cross" else tuple(scores.weight)
    return {
        name: weight.tolist() if scores.queries[name] else [None] * len(one.heads)
        for name, weight in scores.weight.items()
        if name in names and name != "first"
    }


def array_of(tensor: "Tensor | ArrayLike") -> Array:
    """Convert a tensor of any kind."""
    if detach := getattr(tensor, "detach", None):  # of torch: bfloat16 is nothing NumPy knows
        tensor = detach().double().cpu().numpy()
    return np.asarray(tensor, dtype=np.float64)


def _of_row(value: Array, row: int, dims: int, one: Attention) -> Array:
    """Select (H, …) of one row of the batch, whatever axes the batch has."""
    if value.ndim <= dims:
        value = value[None]
    if value.ndim > dims + 1:
        value = flat(value, dims + 1)
        if not -len(value) <= row < len(value):
            raise DataError(f"row must be one of {len(value)} rows of the batch; got {row}.")
        value = value[row]
    if len(value) != len(one.heads):
        raise DataError(
            f"heads must name each of {len(value)} heads of the summary; got {len(one.heads)}."
        )
    return value


def flat(value: Array, dims: int) -> Array:
    """Join all axes but the last ones."""
    return value.reshape(-1, *value.shape[value.ndim - dims :])


def pooled_by(values: Array, by: tuple[int, int]) -> Array:
    """Sum (H, N, M) over buckets of so many rows and columns."""
    H, N, M = values.shape
    rows, columns = by
    padded = np.pad(values, ((0, 0), (0, -N % rows), (0, -M % columns)))
    shape = (H, padded.shape[1] // rows, rows, padded.shape[2] // columns, columns)
    sums: Array = padded.reshape(shape).sum((2, 4))
    return sums


def _pooled(
    pooled: Array, summary: "Summary", spans: tuple[slice, slice]
) -> tuple[Array, tuple[int, int]]:
    """Cut to buckets that hold tokens; returns the positions before the first token in them too."""
    starts = []
    for axis in (0, 1):
        bucket = summary.bucket[axis]
        # Of keys, those before the summary's first are in its count of keys, but not in buckets.
        before = summary.start[0] if axis == 0 else 0
        lead = summary.start[1] // bucket if axis == 1 else 0
        if lead:
            pooled = np.pad(pooled, ((0, 0), (0, 0), (lead, 0)))
        first = before % bucket + spans[axis].start
        last = before % bucket + spans[axis].stop
        buckets = slice(first // bucket, -(-last // bucket))
        pooled = pooled[:, buckets] if axis == 0 else pooled[:, :, buckets]
        starts.append(first % bucket)
    return pooled, (starts[0], starts[1])


class PlainWeights:
    """Weights at hand in the form of a ``Watch``: a summary for each layer, and exact rows."""

    def __init__(self, weights: "Weights", *, is_cross: bool | None = None) -> None:
        self._weights = _checked(weights)
        L, H, N, M = self._weights.shape
        self.kind = "cross" if (N != M if is_cross is None else is_cross) else "encoder"
        self._attentions = [
            OneAttention(self.kind, layer, tuple(range(H)), _Summary.of(self._weights[layer]))  # type: ignore[arg-type]
            for layer in range(L)
        ]

    @property
    def sizes(self) -> tuple[int, int]:
        """N and M."""
        return self._weights.shape[-2], self._weights.shape[-1]

    def __iter__(self) -> Iterator[OneAttention]:
        return iter(self._attentions)

    def rows(self, layer: int, queries: Iterable[int], kind: str) -> Array:
        """Return the weights of chosen queries of a layer, (H, chosen, M)."""
        if kind != self.kind:
            raise SettingError(f"kind must be {self.kind!r}; got {kind!r}.")
        rows: Array = self._weights[layer][:, list(queries)]
        return rows


@dataclass(frozen=True, slots=True)
class _Summary:
    """The parts of ``regard.Summary`` that a page needs, in NumPy, of weights (H, N, M)."""

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
    """Stack and check weights, (L, H, N, M)."""
    try:
        array = _stacked(weights)
    except ValueError:  # lists of several lengths
        raise ShapeError("weights must have rows of one length; got several.") from None
    if not 2 <= array.ndim <= 4 or not array.size:
        raise ShapeError(
            "weights must be (N, M), (H, N, M) or (L, H, N, M), and hold a number at least; got "
            f"shape {array.shape}."
        )
    bad = array[~np.isfinite(array) | (array < 0)]
    if bad.size:
        raise DataError(
            f"weights must be finite and at least 0; got {bad[0]:.4g}. Of scores, show the softmax."
        )
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _stacked(weights: "Weights") -> Array:
    if not isinstance(weights, list | tuple):
        return array_of(weights)
    return np.stack([_stacked(part) for part in weights]) if weights else np.zeros(0)


def _bucket(size: int) -> int:
    """Smallest power of two of positions that leaves at most 64 buckets."""
    bucket = 1
    while -(-size // bucket) > _MAP:
        bucket *= 2
    return bucket
