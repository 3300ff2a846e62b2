"""Blocks of queries, which all engines in plain torch operations go through."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.numerics import dropout_factors, mask_scores, without_unseen
from regard.attention.engine.request import Request
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import OpenRange, cut
from regard.attention.scores import Score
from regard.attention.weighting import Weighting

# Numbers held at once for a block: so many as stay in a core's cache. Matrix products want many
# queries; where all heads must be together, that makes a wider block.
_BLOCK, _BLOCK_OF_PRODUCTS, _BLOCK_OF_HEADS, _FEW_FLOATS = 2**20, 2**22, 2**18, 4
# The same of a block that is looked at: fewer pairs would cost more calls than work.
_PAIRS_LOOKED_AT = 2**21
_MOST_ROWS, _MOST_ROWS_UNDER_A_MASK, _MOST_KEYS = 512, 256, 512
# Fewer rows have fewer keys in common that each sees but a part of: taken where that saves much.
_FEWER_ROWS, _LARGEST_SHARE = 64, 0.75
# Hidden keys between visible ones that are not worth a piece of their own.
_SMALLEST_GAP = 64
# Of a GPU: so many that starting a kernel takes less time than its work.
_BLOCK_OF_A_GPU, _MOST_ROWS_OF_A_GPU, _MOST_KEYS_OF_A_GPU = 2**25, 2048, 4096


class BlockInputs(NamedTuple):
    """Differentiable inputs of one dtype, of all queries and keys or of one block."""

    query: Tensor  # (B, H, N, D)
    key: Tensor  # (B, H, M, D); loops over dot products take key and value with G heads
    value: Tensor  # (B, H, M, E)
    bias: Tensor | None = None  # broadcasts to (B, H, N, M)
    states: Tensor | None = None  # (B, H, N, E), further vectors of queries
    sink: Tensor | None = None  # of the softmax, (H, 1) or (1, 1), where it is part of the weights
    tensors: tuple[Tensor, ...] = ()  # of the score, then of the position bias

    @classmethod
    def of(cls, request: Request) -> "BlockInputs":
        """The inputs of a request in float32 at least, keys that no query sees set to zero."""
        wide = torch.promote_types(request.query.dtype, torch.float32)
        query, key, value = (t.to(wide) for t in (request.query, request.key, request.value))
        key, value = without_unseen(request.mask, key, value)
        if (repeats := query.shape[1] // max(1, key.shape[1])) > 1:
            key, value = (t.repeat_interleave(repeats, dim=1) for t in (key, value))
        bias = None if request.bias is None else request.bias.to(wide)
        tensors = tuple(tensor.to(wide) for tensor in request.tensors())
        return cls(query, key, value, bias, tensors=tensors)

    @classmethod
    def from_flat(cls, flat: Sequence[Tensor | None]) -> "BlockInputs":
        """The inverse of ``flat``."""
        query, key, value, bias, states, sink, *tensors = flat
        assert query is not None
        assert key is not None
        assert value is not None
        made = tuple(tensor for tensor in tensors if tensor is not None)
        return cls(query, key, value, bias, states, sink, made)

    def flat(self) -> tuple[Tensor | None, ...]:
        """Tensors in a row, as functions of autograd take them."""
        return (*self[:6], *self.tensors)

    def of_block(self, block: "Block") -> "BlockInputs":
        """The part of a block."""
        query, key, value, bias, states, sink, tensors = self
        states = None if states is None else rows_of(states, block)
        if sink is not None and len(sink) > 1:
            sink = sink[block.corner[1]]
        query, key, value = rows_of(query, block), keys_of(key, block), keys_of(value, block)
        return BlockInputs(query, key, value, bias_of(bias, block), states, sink, tensors)


class Block(NamedTuple):
    """A part of the batch rows, heads and queries, and the keys these may see."""

    batch: range
    heads: range
    rows: range
    keys: tuple[range, ...]  # in pieces from the first to the last
    hidden: Tensor | None  # True where a pair is hidden; broadcasts to the block

    @property
    def corner(self) -> tuple[slice, slice]:
        """The block's batch rows and heads."""
        return slice(self.batch.start, self.batch.stop), slice(self.heads.start, self.heads.stop)

    def along_keys(self, make: Callable[[range], Tensor], dim: int = -1) -> Tensor:
        """Concatenate the results of ``make`` for each piece of the keys along ``dim``."""
        pieces = [make(keys) for keys in self.keys]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)


class Sizes(NamedTuple):
    """Limits of the size of a block."""

    pairs: int  # of a query and a key, over all batch rows and heads
    rows: int
    keys: int | None  # of a part of a block; None if rows of weights must be whole
    splits_heads: bool  # whether a block may hold fewer than all heads

    @classmethod
    def of(cls, request: Request, floats_per_pair: int, *, cuts_keys: bool) -> "Sizes":
        """The sizes for a request that holds so many numbers for each pair."""
        are_few = floats_per_pair <= _FEW_FLOATS
        like_heads = request.score.has_like_heads and not request.tensors()
        splits = are_few and like_heads and request.position is None
        numbers = _BLOCK_OF_PRODUCTS if are_few and not cuts_keys else _BLOCK
        if splits:
            numbers = _BLOCK_OF_HEADS if cuts_keys else 2 * _BLOCK_OF_HEADS
        most_rows, most_keys = _MOST_ROWS, _MOST_KEYS
        if request.query.is_cuda:
            numbers = _BLOCK_OF_A_GPU
            most_rows, most_keys = _MOST_ROWS_OF_A_GPU, _MOST_KEYS_OF_A_GPU
        pairs = max(1, numbers // max(1, floats_per_pair))
        rows = most_rows if request.mask is None else _MOST_ROWS_UNDER_A_MASK
        heads = 1 if splits else max(1, request.query.shape[1])
        keys = min(most_keys, max(1, pairs // heads)) if cuts_keys else None
        return cls(pairs, rows, keys, splits)

    def largest(self, request: Request) -> int:
        """The most pairs that a part of a block of the request holds."""
        B, H, N, _ = request.query.shape
        M = request.key.shape[2]
        one_query = (1 if self.splits_heads else H) * min(M, self.keys or M)
        return min(B * H * N * M, max(self.pairs, one_query))


@dataclass(frozen=True, slots=True, eq=False)
class BlockPass:
    """Settings that all blocks share and no gradient flows to."""

    score: Score
    position: PositionBias | None
    shape: tuple[int, int, int, int]
    mask: BoundMask | None
    weighting: Weighting
    dropout: float
    seed: int
    sizes: Sizes
    wants_lse: bool

    @classmethod
    def of(cls, request: Request, sizes: Sizes) -> "BlockPass":
        """The pass of a request; draws the seed of its dropout."""
        seed = request.draw_seed() if request.dropout else 0
        B, H, N, _ = request.query.shape
        return cls(
            request.score,
            request.position,
            (B, H, N, request.key.shape[2]),
            request.mask,
            request.weighting,
            request.dropout,
            seed,
            sizes,
            request.return_lse,
        )

    @classmethod
    def of_whole_rows(cls, request: Request) -> "BlockPass":
        """The pass of a request whose blocks hold whole rows of weights, to look at."""
        floats = floats_per_pair(request)
        sizes = Sizes.of(request, floats, cuts_keys=False)
        return cls.of(request, sizes._replace(pairs=max(sizes.pairs, _PAIRS_LOOKED_AT // floats)))

    def blocks(self) -> Iterator[Block]:
        """Blocks in which something may be visible, stripe after stripe of queries."""
        return (block for (block,) in self._blocks(None))

    def parts(self) -> Iterator[tuple[Block, ...]]:
        """Iterate over the blocks, each cut along its keys into parts no larger than ``sizes``."""
        return self._blocks(self.sizes.keys)

    def _blocks(self, most_keys: int | None) -> Iterator[tuple[Block, ...]]:
        B, H, _, _ = self.shape
        for rows, keys in self.stripes(range(self.shape[2])):
            together = max(1, self.sizes.pairs // (len(rows) * self._width(keys)))
            heads = max(1, min(H, together) if self.sizes.splits_heads else H)
            parts = [keys] if most_keys is None else list(_cut(keys, most_keys))
            for batch in pieces(range(B), max(1, together // max(1, H))):
                hidden = [self.mask and self.mask.hidden(rows, part, batch) for part in parts]
                for some in pieces(range(H), heads):
                    yield tuple(
                        Block(batch, some, rows, part, of_heads(pairs, some))
                        for part, pairs in zip(parts, hidden, strict=True)
                    )

    def steps(self, block: Block, device: torch.device) -> Tensor:
        """Distances from the queries of a block to its keys."""
        assert self.position is not None
        make, sizes = self.position.steps, self.shape[2:]
        return block.along_keys(lambda keys: make(block.rows, keys, sizes, device))

    def factor(self, block: Block, weights: Tensor) -> Tensor | None:
        """Dropout factors of a block's weights, or None."""
        if not self.dropout:
            return None
        lead = block.batch, block.heads, block.rows

        def of_keys(keys: range) -> Tensor:
            return dropout_factors(self.seed, self.dropout, (*lead, keys), like=weights)

        return block.along_keys(of_keys)

    def scores(self, block: Block, inputs: BlockInputs) -> Tensor:
        """Scores of a block from its own inputs, −inf where masked."""
        steps = None if self.position is None else self.steps(block, inputs.query.device)
        scores = _scores(self.score, self.position, inputs, steps)
        return mask_scores(scores, block.hidden)

    def scores_of(self, block: Block, inputs: BlockInputs) -> Tensor:
        """Scores of a block from the inputs of all queries and keys, −inf where masked."""
        # Not ``of_block``: where keys are in pieces, that would copy the values.
        query, key = rows_of(inputs.query, block), keys_of(inputs.key, block)
        bias = bias_of(inputs.bias, block)
        return self.scores(block, inputs._replace(query=query, key=key, bias=bias))

    def stripes(self, queries: range) -> Iterator[tuple[range, tuple[range, ...]]]:
        """Groups of queries and the keys that they see; none that see nothing."""
        pairs = self.sizes.pairs // (1 if self.sizes.splits_heads else max(1, self.shape[1]))
        start = queries.start
        while start < queries.stop:
            rows = range(start, min(start + self.sizes.rows, queries.stop))
            keys = self._keys_of(rows)
            if self.mask is not None and len(rows) > _FEWER_ROWS:
                fewer = range(start, start + _FEWER_ROWS)
                row_keys = self._keys_of(fewer)
                if _total(row_keys) < _LARGEST_SHARE * _total(keys):
                    rows, keys = fewer, row_keys
            if (width := self._width(keys)) * len(rows) > pairs:
                rows = range(start, start + max(1, pairs // width))
                keys = self._keys_of(rows)
            if keys:
                yield rows, keys
            start = rows.stop

    def _width(self, keys: tuple[range, ...]) -> int:
        return min(_total(keys), self.sizes.keys or _total(keys))

    def _keys_of(self, rows: range) -> tuple[range, ...]:
        if self.mask is None:
            return (range(self.shape[3]),)
        return self.mask.key_ranges(rows, smallest_gap=_SMALLEST_GAP)


def floats_per_pair(request: Request) -> int:
    """Numbers that the scores of a request hold at once for each pair."""
    of_position = 0 if request.position is None else 2
    return request.score.floats_per_pair(request.query.shape[-1]) + of_position


def rows_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, N, ...) that a block's queries have: a view."""
    return tensor[block.corner][:, :, block.rows.start : block.rows.stop]


def keys_of(tensor: Tensor, block: Block) -> Tensor:
    """The part of (B, H, M, ...) that a block's keys have: a view if they are neighbours."""
    part = tensor[block.corner]
    return block.along_keys(lambda keys: part[:, :, keys.start : keys.stop], dim=2)


def bias_of(bias: Tensor | None, block: Block) -> Tensor | None:
    """The part of a bias that a block adds: a view if its keys are neighbours."""
    if bias is None:
        return None
    corner = corner_of(bias, block)
    if bias.shape[-1] == 1:
        return cut(corner, block.rows, block.keys[0])
    return block.along_keys(lambda keys: cut(corner, block.rows, keys))


def whole_scores(request: Request, inputs: BlockInputs) -> Tensor:
    """The scores of all pairs (B, H, N, M), whatever the mask."""
    steps = _all_steps(request, inputs)
    return _scores(request.score, request.position, inputs, steps)


def _scores(
    score: Score, position: PositionBias | None, inputs: BlockInputs, steps: Tensor | None
) -> Tensor:
    """Scores of pairs, their bias added: a tensor, or a rule of their distances ``steps``."""
    query, key, _, bias, *_, tensors = inputs
    count = len(score.tensors())
    scores = score.tile(query, key, *tensors[:count])
    if position is not None and steps is not None:
        return scores + position.tile(query, steps, *tensors[count:])
    return scores if bias is None else scores + bias


def mixed_by(request: Request, inputs: BlockInputs, weights: Tensor) -> Tensor:
    """Values, and those of the position bias, mixed by a whole matrix of weights."""
    mixed, steps = weights @ inputs.value, _all_steps(request, inputs)
    if request.position is None or steps is None:
        return mixed
    of_bias = inputs.tensors[len(request.score.tensors()) :]
    added = request.position.mix(weights, steps, *of_bias)
    return mixed if added is None else mixed + added


def _all_steps(request: Request, inputs: BlockInputs) -> Tensor | None:
    """Distances from all queries to all keys; None without a rule of distances."""
    if request.position is None:
        return None
    N, M = inputs.query.shape[2], inputs.key.shape[2]
    device = inputs.query.device
    return request.position.steps(OpenRange(0, N), OpenRange(0, M), (N, M), device)


def pieces(whole: range, most: int) -> Iterator[range]:
    """A range in pieces of at most so many."""
    return (whole[start : start + most] for start in range(0, len(whole), most))


def of_heads(hidden: Tensor | None, heads: range) -> Tensor | None:
    """The part of a hidden tile that some heads have."""
    if hidden is None or hidden.dim() < 3 or hidden.shape[-3] == 1:
        return hidden
    return hidden[..., heads.start : heads.stop, :, :]


def _cut(key_ranges: tuple[range, ...], most: int) -> Iterator[tuple[range, ...]]:
    """Pieces of keys in groups of ``most`` keys; the last may hold fewer."""
    part, room = list[range](), most
    for keys in key_ranges:
        remaining = keys
        while remaining:
            part.append(remaining[:room])
            remaining, room = remaining[room:], room - len(part[-1])
            if not room:
                yield tuple(part)
                part, room = [], most
    if part:
        yield tuple(part)


def _total(key_ranges: tuple[range, ...]) -> int:
    return sum(map(len, key_ranges))


def corner_of(bias: Tensor, block: Block) -> Tensor:
    """The part of a bias that a block's batch rows and heads have."""
    batch, heads = block.corner
    bias = bias[batch] if bias.shape[0] > 1 else bias
    return bias[:, heads] if bias.shape[1] > 1 else bias
