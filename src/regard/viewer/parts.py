"""One attention's summary as plain arrays of one text, the padding of a batch cut away."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import DataError
from regard.viewer.example import Head, Layer
from regard.viewer.layer_summary import AXES, Kind

if TYPE_CHECKING:
    from torch import Tensor

    from regard.attention.inspect.summary import Summary

Array = NDArray[np.float64]
# (example, kind, layer, head, queries) -> weights (queries, keys), or None where there are none.
AskedRows = Callable[[int, str, Layer, Head, Sequence[int]], NDArray[np.floating] | None]


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
        summary: What they looked at.

    Example:
        >>> import torch, regard
        >>> summary = regard.summarize(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
        >>> one = OneAttention("encoder", 0, (0, 1), summary)
        >>> example = regard.viewer.example_of([one], ["a", "b", "c"])
        >>> example.summaries[0].heads, example.summaries[0].measures["entropy"]
        ((0, 1), (1.099, 1.099))
    """

    kind: str
    layer: int
    heads: tuple[int, ...]
    summary: "Summary"


@dataclass(frozen=True, slots=True)
class Part:
    """One attention's arrays of one text; heads first.

    Attributes:
        kind: ``encoder``, ``decoder`` or ``cross``.
        layer: Counted from 0.
        heads: Their numbers.
        places: Where the tokens stand among the batch's queries and keys.
        entropy: (H, N), as all that follow, of the summary.
        distance: (H, N).
        first: (H, N).
        received: (H, M).
        counts: (H, N).
        pooled: (H, R, C), only buckets with tokens.
        bucket: Places in a bucket of queries and of keys.
        start: Places before the first token in its bucket.
        top_keys: (H, N, K), counted from the first token.
        top_weights: (H, N, K).
    """

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    places: tuple[slice, slice]
    entropy: Array
    distance: Array
    first: Array
    received: Array
    counts: Array
    pooled: Array
    bucket: tuple[int, int]
    start: tuple[int, int]
    top_keys: Array
    top_weights: Array

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
        """The attention of a row of the batch, cut to the tokens of each side.

        Raises:
            DataError: There is no such row, or there are more tokens than places.
        """
        arrays = {name: array_of(value) for name, value in one.summary.tensors().items()}
        dims = {"pooled": 2, "top_keys": 2, "top_weights": 2}
        arrays = {
            name: _of_row(value, row, dims.get(name, 1), one) for name, value in arrays.items()
        }
        found = (arrays["entropy"].shape[1], arrays["received"].shape[1])
        wanted = [sizes[side] for side in AXES[one.kind]]
        cut = []
        for size, tokens, what in zip(found, wanted, ("queries", "keys"), strict=True):
            if tokens > size:
                raise DataError(
                    f"tokens must be at most the {size} {what} of the {one.kind} attention; got "
                    f"{tokens}."
                )
            cut.append(slice(size - tokens, size) if padding == "left" else slice(0, tokens))
        queries, keys = cut
        pooled, start = _pooled(arrays["pooled"], one.summary, found, (queries, keys))
        top = arrays["top_keys"][:, queries]
        return cls(
            kind=one.kind,  # type: ignore[arg-type]
            layer=one.layer,
            heads=tuple(one.heads),
            places=(queries, keys),
            **{name: arrays[name][:, queries] for name in ("entropy", "distance", "first")},
            received=arrays["received"][:, keys],
            counts=arrays["counts"][:, queries],
            pooled=pooled,
            bucket=one.summary.bucket,
            start=start,
            top_keys=np.where(top < 0, -1, np.maximum(top - keys.start, -1)),
            top_weights=arrays["top_weights"][:, queries],
        )


def array_of(tensor: "Tensor | ArrayLike") -> Array:
    """A tensor of any kind as an array."""
    if detach := getattr(tensor, "detach", None):  # of torch: bfloat16 is nothing NumPy knows
        tensor = detach().double().cpu().numpy()
    return np.asarray(tensor, dtype=np.float64)


def _of_row(value: Array, row: int, dims: int, one: Attention) -> Array:
    """(H, …) of one row of the batch, whatever axes the batch has."""
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
    """All axes but the last ones as one."""
    return value.reshape(-1, *value.shape[value.ndim - dims :])


def pooled_by(values: Array, by: tuple[int, int]) -> Array:
    """The sums of (H, N, M) over buckets of so many rows and columns."""
    H, N, M = values.shape
    rows, columns = by
    padded = np.pad(values, ((0, 0), (0, -N % rows), (0, -M % columns)))
    shape = (H, padded.shape[1] // rows, rows, padded.shape[2] // columns, columns)
    found: Array = padded.reshape(shape).sum((2, 4))
    return found


def _pooled(
    pooled: Array, summary: "Summary", found: tuple[int, int], cut: tuple[slice, slice]
) -> tuple[Array, tuple[int, int]]:
    """The buckets that hold tokens, and how many places stand before the first token in them."""
    starts = []
    for axis in (0, 1):
        bucket = summary.bucket[axis]
        # Of keys, those before the summary's first are in its count of keys, but not in buckets.
        before = summary.start[0] if axis == 0 else 0
        lead = summary.start[1] // bucket if axis == 1 else 0
        if lead:
            pooled = np.pad(pooled, ((0, 0), (0, 0), (lead, 0)))
        first = before % bucket + cut[axis].start
        last = before % bucket + cut[axis].stop
        kept = slice(first // bucket, -(-last // bucket))
        pooled = pooled[:, kept] if axis == 0 else pooled[:, :, kept]
        starts.append(first % bucket)
    return pooled, (starts[0], starts[1])
