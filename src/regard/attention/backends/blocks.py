"""Blocks of queries: what the engines in plain torch operations have in common."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.grid import cut
from regard.attention.mask import BoundMask
from regard.attention.noise import kept
from regard.attention.request import Request
from regard.attention.scores import Score
from regard.attention.weighting import Weighting

# Numbers held at once for a block. 4 MB of float32 stay in a core's cache, which is best where a
# score works on every dimension of a pair; matrix products want wider blocks, whose gradients of
# keys are also added up less often.
_BLOCK, _BLOCK_OF_PRODUCTS, _FEW_FLOATS = 2**20, 2**22, 4
_MOST_ROWS = 256
# Along a band, more rows have more keys in common that each sees but a part of.
_MOST_ROWS_OF_BAND = 64


class Inputs(NamedTuple):
    """What gradients flow to: all of one dtype, key and value with as many heads as the query.

    Attributes:
        query: (B, H, N, D).
        key: (B, H, M, D).
        value: (B, H, M, E).
        bias: Broadcasts to (B, H, N, M), or None.
        tensors: Of the score, then of the position bias.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, request: Request) -> "Inputs":
        """The inputs of a request in float32 at least, keys that no query sees set to zero."""
        wide = torch.promote_types(request.query.dtype, torch.float32)
        query, key, value = (t.to(wide) for t in (request.query, request.key, request.value))
        key, value = without_hidden(request.mask, key, value)
        if (repeats := query.shape[1] // key.shape[1]) > 1:
            key, value = (t.repeat_interleave(repeats, dim=1) for t in (key, value))
        bias = None if request.bias is None else request.bias.to(wide)
        tensors = tuple(tensor.to(wide) for tensor in request.tensors())
        return cls(query, key, value, bias, tensors)


class Block(NamedTuple):
    """Some batch rows, some of their queries, and the keys these may see."""

    chunk: range
    rows: range
    keys: range


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What the blocks have in common and no gradient flows to."""

    score: Score
    position: PositionBias | None
    lengths: tuple[int, int]
    mask: BoundMask | None
    weighting: Weighting
    dropout: float
    seed: int
    sizes: tuple[int, int]
    wants_lse: bool

    @classmethod
    def of(cls, request: Request, *, floats_per_pair: int) -> "Job":
        """The job of a request; draws the seed of its dropout.

        Args:
            request: What is asked.
            floats_per_pair: Numbers held at once for each pair of a query and a key.
        """
        seed = 0
        if request.dropout:
            seed = int(torch.randint(2**31 - 1, (), generator=request.generator))
        return cls(
            request.score,
            request.position,
            (request.query.shape[2], request.key.shape[2]),
            request.mask,
            request.weighting,
            request.dropout,
            seed,
            block_sizes(request, floats_per_pair),
            request.return_lse,
        )

    def blocks(self, batch: int, queries: int, keys: int) -> Iterator[Block]:
        """All blocks, rows of one chunk after the other."""
        chunk, rows = self.sizes
        for b in range(0, batch, chunk):
            for n in range(0, queries, rows):
                those = range(n, min(n + rows, queries))
                span = range(keys) if self.mask is None else self.mask.span(those)
                yield Block(range(b, min(b + chunk, batch)), those, span)

    def veil(self, block: Block) -> Tensor | None:
        """True where a block is hidden, or None if all of it is visible."""
        veil = None if self.mask is None else self.mask.veil(block.rows, block.keys)
        if veil is not None and veil.dim() == 4 and veil.shape[0] > 1:
            veil = veil[block.chunk.start : block.chunk.stop]
        return veil

    def steps(self, block: Block, device: torch.device) -> Tensor:
        """How far the keys of a block are after its queries' places."""
        assert self.position is not None
        return self.position.steps(block.rows, block.keys, self.lengths, device)

    def factor(self, block: Block, weights: Tensor) -> Tensor | None:
        """What dropout multiplies the weights of a block by, or None."""
        if not self.dropout:
            return None
        return kept(
            self.seed,
            self.dropout,
            block.chunk,
            range(weights.shape[1]),
            block.rows,
            block.keys,
            like=weights,
        )


def block_sizes(request: Request, floats_per_pair: int) -> tuple[int, int]:
    """How many batch rows and how many queries make a block."""
    B, H, N, _ = request.query.shape
    M, most = request.key.shape[2], _MOST_ROWS
    if request.mask is not None and (width := request.mask.width) is not None:
        most = _MOST_ROWS_OF_BAND
        M = min(M, width + most)
    block = _BLOCK_OF_PRODUCTS if floats_per_pair <= _FEW_FLOATS else _BLOCK
    pairs = max(1, block // max(1, H * M * floats_per_pair))
    chunk = max(1, min(B, pairs // max(1, min(N, 32))))
    return chunk, max(1, min(N, pairs // chunk, most))


def rows_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, N, ...) that a block's queries have."""
    return tensor[block.chunk.start : block.chunk.stop, :, block.rows.start : block.rows.stop]


def keys_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, M, ...) that a block's keys have."""
    return tensor[block.chunk.start : block.chunk.stop, :, block.keys.start : block.keys.stop]


def bias_of(bias: Tensor | None, block: Block) -> Tensor | None:
    """The part of a bias that a block adds."""
    if bias is None:
        return None
    if bias.shape[0] > 1:
        bias = bias[block.chunk.start : block.chunk.stop]
    return cut(bias, block.rows, block.keys)


def without_hidden(mask: BoundMask | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values with zeros where no query looks, if what is there could do harm.

    ``0 · NaN`` is NaN, so it must not be in the tensors at all. Where asking is free, as on a CPU,
    finite keys and values are left alone.
    """
    hidden = None if mask is None else mask.hidden_of(key)
    if hidden is None or (key.device.type == "cpu" and _is_finite(key) and _is_finite(value)):
        return key, value
    return key.masked_fill(hidden, 0), value.masked_fill(hidden, 0)


def mix(weights: Tensor, value: Tensor, veil: Tensor | None) -> Tensor:
    """``weights @ value``, where a NaN in a value reaches only the queries that see it."""
    out = weights @ value
    if veil is not None and not _is_finite(out):
        bad = ~value.isfinite()
        reached = (~veil).to(value.dtype).expand(weights.shape) @ bad.to(value.dtype)
        clean = weights @ value.masked_fill(bad, 0)
        out = torch.where(reached > 0, float("nan"), clean)
    return out


def _is_finite(tensor: Tensor) -> bool:
    """Whether the sum is finite; if so, all of it is."""
    total = float(tensor.detach().sum())
    return total - total == 0
