"""A summary of attention weights, in memory that grows with N, and the buckets of its map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.errors import ShapeError

# The tensors that have an axis of queries, and which it is.
_ALONG_QUERIES = {
    **dict.fromkeys(("lse", "entropy", "distance", "first", "counts"), -1),
    **dict.fromkeys(("top_keys", "top_weights"), -2),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """Statistics of attention weights, without the weights; ``summarize`` makes it.

    Leading axes are those of ``attend``'s answer, heads last. A query with nothing to see has no
    weight anywhere: entropy, distance and mass are zero, ``lse`` is −inf and ``top_keys`` are −1.

    Attributes:
        lse: The log-sum-exp of each query's scores, with the softmax's sink if it has one.
        entropy: ``−Σ weight · log(weight)`` over the keys, in nats.
        top_keys: The keys with the best scores, the best first, of equals the earlier; −1 where
            fewer are visible.
        top_weights: Their weights.
        distance: ``Σ weight · |key position − query position|``; the last query's position is
            that of the last key.
        first: The weight of the first key.
        received: The sum of the weights of each key over the queries that count.
        pooled: The same sums over buckets of queries and keys. All of it adds up to the number of
            counted queries that see something, less the weight of a sink.
        counts: Which queries count and see something.
        bucket: How many queries, and how many keys, share a bucket: powers of two.
        start: The positions of the first query and the first key in a longer sequence, from which
            buckets are counted.
        map: How many buckets there may be at most on either side.

    Example:
        >>> import torch
        >>> from regard.attention import summarize
        >>> seen = summarize(torch.zeros(2, 4), torch.zeros(5, 4))  # every key alike
        >>> seen.entropy.exp(), seen.received
        (tensor([5., 5.]), tensor([0.4000, 0.4000, 0.4000, 0.4000, 0.4000]))
    """

    lse: Float[Tensor, "*b N"]
    entropy: Float[Tensor, "*b N"]
    top_keys: Int[Tensor, "*b N K"]
    top_weights: Float[Tensor, "*b N K"]
    distance: Float[Tensor, "*b N"]
    first: Float[Tensor, "*b N"]
    received: Float[Tensor, "*b M"]
    pooled: Float[Tensor, "*b R C"]
    counts: Bool[Tensor, "*b N"]
    bucket: tuple[int, int]
    start: tuple[int, int] = (0, 0)
    map: int = 64

    @property
    def effective_keys(self) -> Float[Tensor, "*b N"]:
        """``exp(entropy)``: over how many keys weights as even would spread; 0 for no key."""
        return self.entropy.exp().masked_fill(self.lse == float("-inf"), 0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes, N and M."""
        return (*self.lse.shape, self.received.shape[-1])

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by their names, as ``safetensors.torch.save_file`` takes them."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in named if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> "Summary":
        """Copy to another device."""
        return self._with({name: tensor.to(device) for name, tensor in self.tensors().items()})

    def detach(self) -> "Summary":
        """Detach from the graph of gradients."""
        return self._with({name: tensor.detach() for name, tensor in self.tensors().items()})

    def __getitem__(self, index: object) -> "Summary":
        """The summary of a batch row, or of a head: an index of the leading axes."""
        axes = self.lse.dim() - 1
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > axes or not all(isinstance(part, int | slice) for part in parts):
            raise ShapeError(
                f"index must be of integers and slices on the {axes} leading axes "
                f"{tuple(self.lse.shape[:-1])}; got {index!r}."
            )
        return self._with({name: tensor[parts] for name, tensor in self.tensors().items()})

    def of_heads(self, heads: Sequence[int]) -> "Summary":
        """The summary of some heads, which are its last leading axis."""
        axis = self.lse.dim() - 2
        chosen = torch.tensor(list(heads), device=self.lse.device)
        return self._with({n: t.index_select(axis, chosen) for n, t in self.tensors().items()})

    def repeated(self, copies: int) -> "Summary":
        """The summary of each batch row several times in a row, as a beam search reads a text."""
        return self._with({n: t.repeat_interleave(copies, 0) for n, t in self.tensors().items()})

    def __len__(self) -> int:
        """The size of the first leading axis."""
        if self.lse.dim() < 2:
            raise TypeError("a summary without leading axes has no length")
        return len(self.lse)

    def __iter__(self) -> Iterator["Summary"]:
        """The summaries along the first leading axis."""
        return (self[row] for row in range(len(self)))

    def joined(self, *summaries: "Summary") -> "Summary":
        """The summary of these queries and of those that came after them, such as decoding steps.

        Equal to ``summarize`` of all at once: the keys of a part are the first keys of the
        next. A part longer than ``map`` queries must begin where a bucket does; if it does not,
        give its position as ``start=`` to ``summarize``.

        Raises:
            ShapeError: The parts do not fit together.
        """
        parts = (self, *summaries)
        self._check_parts(summaries)
        M = max(part.received.shape[-1] for part in parts)
        N = sum(part.lse.shape[-1] for part in parts)
        rows, keys = self.start
        most = [max(part.bucket[axis] for part in parts) for axis in (0, 1)]
        bucket = (
            max(bucket_width(rows, N, self.map), most[0]),
            max(bucket_width(keys, M - keys, self.map), most[1]),
        )
        R, C = bucket_count(rows, N, bucket[0]), bucket_count(keys, M - keys, bucket[1])
        pooled = self.pooled.new_zeros(*self.lse.shape[:-1], R, C)
        position = rows
        for part in parts:
            columns = pooled.new_zeros(*part.pooled.shape[:-1], C)
            add_buckets(columns, keys, bucket[1], part.pooled, part.start[1], part.bucket[1])
            add_buckets(pooled.mT, rows, bucket[0], columns.mT, position, part.bucket[0])
            position += part.lse.shape[-1]
        tensors = {
            name: torch.cat([part.tensors()[name] for part in parts], dim)
            for name, dim in _ALONG_QUERIES.items()
        }
        received = [F.pad(p.received, (0, M - p.received.shape[-1])) for p in parts]
        tensors |= {"received": torch.stack(received).sum(dim=0), "pooled": pooled}
        return self._with(tensors, bucket=bucket)

    def __repr__(self) -> str:
        *lead, N, M = self.shape
        sees = self.lse > float("-inf")
        mean = self.entropy[sees].mean().item() if bool(sees.any()) else 0.0
        of = " × ".join(map(str, lead)) + " of " if lead else ""
        return (
            f"Summary({of}{N} queries × {M} keys, top {self.top_keys.shape[-1]}, map "
            f"{self.pooled.shape[-2]} × {self.pooled.shape[-1]}, mean entropy {mean:.3f} nats)"
        )

    def _with(self, changes: dict[str, Tensor], **sizes: tuple[int, int]) -> "Summary":
        return replace(self, **changes, **sizes)  # type: ignore[arg-type]

    def _check_parts(self, summaries: tuple["Summary", ...]) -> None:
        before, position = self, self.start[0]
        for part in summaries:
            position += before.lse.shape[-1]
            for name, ours, theirs in (
                ("leading axes", before.lse.shape[:-1], part.lse.shape[:-1]),
                ("number of top keys", before.top_keys.shape[-1], part.top_keys.shape[-1]),
            ):
                if ours != theirs:
                    raise ShapeError(
                        f"parts must have the same {name}; got {_plain(ours)} and {_plain(theirs)}."
                    )
            is_short = part.received.shape[-1] < before.received.shape[-1]
            if is_short or part.start[1] < self.start[1]:
                raise ShapeError(
                    "keys of a part must be the first keys of the next; got "
                    f"{before.received.shape[-1]} keys, then {part.received.shape[-1]}."
                )
            if (position - part.start[0]) % part.bucket[0]:
                raise ShapeError(
                    f"a part of {part.lse.shape[-1]} queries in buckets of {part.bucket[0]} must "
                    f"begin where a bucket does; got position {position}. "
                    f"Make it with summarize(..., start=({position}, {part.start[1]}))."
                )
            before = part


def _plain(shape: object) -> object:
    return tuple(shape) if isinstance(shape, torch.Size) else shape


def bucket_width(start: int, length: int, most: int) -> int:
    """The smallest power of two as a width that leaves at most ``most`` buckets."""
    width = 1
    while bucket_count(start, length, width) > max(1, most) and width < start + length:
        width *= 2
    return width


def bucket_count(start: int, length: int, width: int) -> int:
    """Number of buckets that hold positions ``start`` to ``start + length``."""
    return (start % width + length + width - 1) // width


def merge_buckets(
    pooled: Float[Tensor, "*b R"], start: int, width: int, wider: int
) -> Float[Tensor, "*b W"]:
    """Sums over buckets of ``width`` positions, from ``start`` on, as sums over wider ones."""
    times = wider // width
    if times == 1:
        return pooled
    before = start // width % times
    after = -(before + pooled.shape[-1]) % times
    padded = F.pad(pooled, (before, after))
    return padded.reshape(*pooled.shape[:-1], padded.shape[-1] // times, times).sum(dim=-1)


def add_buckets(
    total: Float[Tensor, "*b R"],
    start: int,
    width: int,
    part: Float[Tensor, "*b r"],
    part_start: int,
    part_width: int,
) -> None:
    """Add sums over buckets of a part to those of the whole, on the last axis."""
    if width % part_width:
        raise ShapeError(
            f"buckets of a part must not be wider than those of the whole; got {part_width} "
            f"and {width}."
        )
    part = merge_buckets(part, part_start, part_width, width)
    first = part_start // width - start // width
    total[..., first : first + part.shape[-1]] += part
