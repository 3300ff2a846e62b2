"""What a mask is: which keys a query may look at. True means it may.

A mask is a small object that knows a rule, not a matrix. ``bind`` fixes the sizes; the bound mask
answers for any tile of the N×M grid whether all of it is visible, none of it, or which part. The
rules themselves are in ``masks.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.grid import Band, Cover, Form, Grid, Runs, Tile, as_tensor, cut, lift
from regard.errors import ShapeError

_BOUNDS_KEPT = 8
_HIDDEN_BLOCK, _HIDDEN_ROWS = 2**20, 256
# The fewest keys whose being hidden is asked for by themselves.
_FINEST = 128
_PLACES_LOOKED_AT = 8


class Mask(ABC):
    """Which keys a query may look at; join masks with ``&``, ``|`` and ``~``.

    A mask belongs to one batch and never changes: use the same object in every layer, since it
    keeps what it worked out for the sizes it met.

    Example:
        >>> from regard.attention import causal, lengths
        >>> print((causal() & lengths([3])).draw(4, 4))
        1 . . .
        1 1 . .
        1 1 1 .
        1 1 1 .
    """

    def __init__(self) -> None:
        self._bounds: dict[tuple[object, ...], BoundMask] = {}

    @abstractmethod
    def check(self, grid: Grid) -> None:
        """Raise ShapeError if the mask cannot be applied to this grid."""

    @abstractmethod
    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        """Whether queries ``rows`` see all of ``keys`` or nothing; None: look at the pairs.

        Answered from the rule alone, without making a tensor.
        """

    @abstractmethod
    def pairs(self, grid: Grid, rows: range, keys: range) -> Bool[Tensor, "..."]:
        """What queries ``rows`` see of ``keys``; broadcasts to (B, H, len(rows), len(keys))."""

    @abstractmethod
    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        """The shape of the dense mask at most: one on the axes of (B, H, N, M) it ignores."""

    @abstractmethod
    def form(self, grid: Grid) -> Form | None:
        """A shape that all visible pairs lie in and that backends know, or None."""

    @final
    def tile(self, grid: Grid, rows: range, keys: range) -> Tile:
        """What queries ``rows`` see of ``keys``: all, nothing, or a boolean tensor."""
        cover = self.cover(grid, rows, keys)
        return self.pairs(grid, rows, keys) if cover is None else cover

    @final
    def bind(
        self,
        batch: int | tuple[int, ...],
        heads: int | None,
        queries: int,
        keys: int,
        device: torch.device | str = "cpu",
    ) -> "BoundMask":
        """The mask at fixed sizes.

        Args:
            batch: B, or the sizes of several batch axes.
            heads: H, or None where the tensors have no axis of heads.
            queries: N.
            keys: M.
            device: Where its tensors are wanted.

        Raises:
            ShapeError: The mask does not fit these sizes, or lives on another device.
        """
        sizes = (batch, heads, queries, keys, device)
        bound = self._bounds.get(sizes)
        if bound is None:
            axes = (batch,) if isinstance(batch, int) else batch
            grid = Grid(axes, heads, queries, keys, torch.device(device))
            self.check(grid)
            if len(self._bounds) >= _BOUNDS_KEPT:
                self._bounds.pop(next(iter(self._bounds)))
            bound = self._bounds[sizes] = BoundMask(self, grid)
        return bound

    @final
    def draw(self, queries: int, keys: int) -> str:
        """The mask as text: a line per query, ``1`` where it sees a key and ``.`` where not.

        A mask that differs between batch rows or heads is drawn once for each, an empty line
        between.

        Example:
            >>> from regard.attention import causal
            >>> print(causal().draw(2, 4))
            1 1 1 .
            1 1 1 1
        """
        grid = Grid((), None, queries, keys, torch.device("cpu"))
        seen = as_tensor(self.tile(grid, range(queries), range(keys)), grid).cpu()
        blocks = seen.expand(*seen.shape[:-2], queries, keys).reshape(-1, queries, keys)
        return "\n\n".join(
            "\n".join(" ".join("1" if see else "." for see in row) for row in block)
            for block in blocks.tolist()
        )

    @final
    def __and__(self, other: "Mask") -> "Mask":
        """Visible where both are."""
        return _Both(self, _as_mask_operand(other))

    @final
    def __or__(self, other: "Mask") -> "Mask":
        """Visible where either is."""
        return _opposite(_Both(_opposite(self), _opposite(_as_mask_operand(other))))

    __rand__, __ror__ = __and__, __or__

    @final
    def __invert__(self) -> "Mask":
        """Visible where this mask hides."""
        return _opposite(self)


@final
@dataclass(frozen=True)
class BoundMask:
    """A mask at fixed sizes, and the forms that backends ask for.

    Attributes:
        mask: The rule.
        grid: The sizes.
    """

    mask: Mask
    grid: Grid
    _floats: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def tile(self, rows: range, keys: range) -> Tile:
        """What queries ``rows`` see of ``keys``: all, nothing, or a boolean tensor."""
        if len(rows) == self.grid.queries and len(keys) == self.grid.keys:
            return self.whole
        return self.mask.tile(self.grid, rows, keys)

    def veil(
        self, rows: range, keys: tuple[range, ...], chunk: range
    ) -> Bool[Tensor, "..."] | None:
        """Where ``rows`` of batch rows ``chunk`` do not see ``keys``; None if they see them all.

        Broadcasts to (b, H, n, m), with pieces of keys one after the other.
        """
        veils = [self._veil_of(rows, piece, chunk) for piece in keys]
        if len(veils) == 1 or all(veil is None for veil in veils):
            return veils[0]
        nothing = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=self.grid.device)
        filled = [nothing if veil is None else veil for veil in veils]
        lead = tuple(
            map(max, zip(*((1, 1, 1, *veil.shape)[-4:-1] for veil in filled), strict=True))
        )
        return torch.cat(
            [veil.expand(*lead, len(k)) for veil, k in zip(filled, keys, strict=True)], -1
        )

    def spans(self, rows: range, *, smallest_gap: int = 1) -> tuple[range, ...]:
        """The keys that some query of ``rows`` may see, in pieces from the first to the last.

        Read off a form; else found by halving, from tiles that are known to be hidden.

        Args:
            rows: The queries.
            smallest_gap: How many hidden keys between two pieces keep them apart.
        """
        every = range(self.grid.keys)
        found = self._seen(rows, every) if self.form is None else self.form.spans(rows, every.stop)
        joined: list[range] = []
        for span in found:
            if joined and span.start - joined[-1].stop < smallest_gap:
                joined[-1] = range(joined[-1].start, max(joined[-1].stop, span.stop))
            elif span:
                joined.append(span)
        return tuple(joined)

    def _seen(self, rows: range, keys: range) -> list[range]:
        """Pieces of ``keys`` that are not known to be hidden."""
        cover = self.mask.cover(self.grid, rows, keys)
        if cover is Cover.NONE:
            return []
        if cover is Cover.ALL or len(keys) <= _FINEST:
            return [keys]
        middle = keys.start + len(keys) // 2
        left, right = range(keys.start, middle), range(middle, keys.stop)
        return self._seen(rows, left) + self._seen(rows, right)

    @cached_property
    def form(self) -> Form | None:
        """A shape that all visible pairs lie in and that backends know, or None."""
        return self.mask.form(self.grid)

    @cached_property
    def cover(self) -> Cover | None:
        """Whether everything or nothing is visible, if that is known without looking."""
        return self.mask.cover(self.grid, range(self.grid.queries), range(self.grid.keys))

    @cached_property
    def whole(self) -> Tile:
        """The tile of all queries and keys."""
        return self.mask.tile(self.grid, range(self.grid.queries), range(self.grid.keys))

    @cached_property
    def whole_veil(self) -> Bool[Tensor, "..."] | None:
        """Where queries do not see keys, or None if they see them all."""
        return None if self.whole is Cover.ALL else ~as_tensor(self.whole, self.grid)

    def _veil_of(self, rows: range, keys: range, chunk: range) -> Tensor | None:
        if len(rows) == self.grid.queries and len(keys) == self.grid.keys:
            return _of_rows(self.whole_veil, chunk)
        tile = self.tile(rows, keys)
        if tile is Cover.ALL:
            return None
        seen = _of_rows(as_tensor(tile, self.grid), chunk)
        return None if seen is None else ~seen

    @property
    def size(self) -> int:
        """How many elements the dense mask has at most; known without making it."""
        return prod(self.mask.extent(self.grid))

    @cached_property
    def width(self) -> int:
        """About how many keys a query sees at most: read off a band, or looked up at a few."""
        N, M = self.grid.queries, self.grid.keys
        if isinstance(self.form, Band):
            least, most = self.form.least, self.form.most
            return M if least is None or most is None else max(0, most - least + 1)
        places = range(0, N, max(1, N // _PLACES_LOOKED_AT))
        seen = (sum(map(len, self.spans(range(n, n + 1)))) for n in places)
        return max(seen, default=0)

    @cached_property
    def is_causal(self) -> bool:
        """Whether query i sees exactly the keys up to i, so that a flag says it all."""
        return self.form == Band(None, 0, is_exact=True)

    def dense(self) -> Bool[Tensor, "..."]:
        """The boolean tensor; broadcasts to (B, H, N, M), with size one where nothing differs."""
        return as_tensor(self.whole, self.grid)

    def penalty(self, dtype: torch.dtype) -> Float[Tensor, "..."]:
        """Zero where a key is visible and −inf where it is hidden; broadcasts to (B, H, N, M)."""
        if dtype not in self._floats:
            seen = self.dense()
            zeros = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
            self._floats[dtype] = zeros.masked_fill_(~seen, float("-inf"))
        return self._floats[dtype]

    @cached_property
    def hidden(self) -> Bool[Tensor, "b h M 1"] | None:
        """Keys that no query sees, or None if it is known that there are none."""
        if self.cover is Cover.ALL:
            return None
        B, H, N, M = self.mask.extent(self.grid)
        seen = torch.zeros(B, H, 1, M, dtype=torch.bool, device=self.grid.device)
        if isinstance(self.form, Band) and self.form.is_exact:
            band = self.form.span(range(N), M)
            if len(band) == M:
                return None
            seen[..., band.start : band.stop] = True
        else:
            for rows, keys in self._seen_tiles(N, B * H):
                tile = as_tensor(self.tile(rows, keys), self.grid)
                seen[..., keys.start : keys.stop] |= tile.any(dim=-2, keepdim=True)
        hidden = ~seen.transpose(-1, -2)
        if not hidden.is_cuda and not bool(hidden.any()):
            return None
        return hidden.expand(B, H, self.grid.keys, 1)

    def _seen_tiles(self, queries: int, others: int) -> Iterator[tuple[range, range]]:
        """Tiles of the grid that hold all that is visible, ``others`` of them beside each other."""
        most = max(1, min(self.grid.keys, self.width + _FINEST))
        rows = max(1, min(_HIDDEN_ROWS, _HIDDEN_BLOCK // max(1, others * most)))
        for start in range(0, queries, rows):
            some = range(start, min(start + rows, queries))
            for keys in self.spans(some):
                yield some, keys

    def hidden_of(self, key: Float[Tensor, "B G M D"]) -> Bool[Tensor, "b g M 1"] | None:
        """``hidden`` for keys that several heads may share: hidden from all that do."""
        hidden, groups = self.hidden, key.shape[1]
        if hidden is None or hidden.shape[1] in (1, groups):
            return hidden
        return hidden.reshape(hidden.shape[0], groups, -1, *hidden.shape[2:]).all(dim=2)


def dense(tensor: Bool[Tensor, "..."]) -> Mask:
    """A boolean tensor as a mask, True where a query may look.

    Args:
        tensor: Broadcasts to (*batch, heads, N, M).

    Raises:
        ShapeError: The tensor is not boolean.

    Example:
        >>> print(dense(torch.eye(3, dtype=torch.bool)).draw(3, 3))
        1 . .
        . 1 .
        . . 1
    """
    return _Dense(tensor)


def as_mask(mask: Mask | Bool[Tensor, "..."]) -> Mask:
    """The mask itself, or a boolean tensor made into one.

    Raises:
        ShapeError: It is neither.
    """
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return _Dense(mask)
    raise ShapeError(
        f"mask must be a Mask or a boolean tensor; got {type(mask).__name__}. "
        "Use lengths(), causal(), window(), documents(), prefix(), dense() or where()."
    )


@final
class _Dense(Mask):
    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        if not isinstance(tensor, Tensor):
            raise ShapeError(f"mask must be a boolean tensor; got {type(tensor).__name__}.")
        if tensor.dtype != torch.bool:
            raise ShapeError(
                f"mask must be boolean, True where a query may look; got {tensor.dtype}. "
                "Numbers to add to the scores are a bias: pass bias=."
            )
        # A copy, so that what was worked out stays true when the caller's tensor changes.
        self.tensor = tensor.detach().clone()

    def check(self, grid: Grid) -> None:
        if not grid.accepts(self.tensor.shape):
            raise ShapeError(
                f"mask must broadcast to (*batch, N, M) = {grid.shape}; "
                f"got {tuple(self.tensor.shape)}."
            )
        check_device("mask", self.tensor, grid)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        return None

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        return cut(lift(self.tensor, grid), rows, keys)

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B, H, N, M = (1, 1, 1, 1, *lift(self.tensor, grid).shape)[-4:]
        return (B, H, N, M)

    def form(self, grid: Grid) -> Form | None:
        return None


@final
class _Both(Mask):
    def __init__(self, one: Mask, other: Mask) -> None:
        super().__init__()
        self.one, self.other = one, other

    def check(self, grid: Grid) -> None:
        self.one.check(grid)
        self.other.check(grid)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        covers = {mask.cover(grid, rows, keys) for mask in (self.one, self.other)}
        if Cover.NONE in covers:
            return Cover.NONE
        return Cover.ALL if covers == {Cover.ALL} else None

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        one, other = self.one.tile(grid, rows, keys), self.other.tile(grid, rows, keys)
        if not isinstance(one, Tensor) or not isinstance(other, Tensor):
            # One of them hides nothing here: what both hide, or neither, is a cover.
            return as_tensor(other if one is Cover.ALL else one, grid)
        return one & other

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        B, H, N, M = map(max, self.one.extent(grid), self.other.extent(grid))
        return (B, H, N, M)

    def form(self, grid: Grid) -> Form | None:
        one, other = self.one.form(grid), self.other.form(grid)
        if isinstance(one, Band) and isinstance(other, Band):
            return one & other
        # Documents are narrower than a band that is open on one side.
        found, rest = (one, other) if isinstance(one, Runs) or other is None else (other, one)
        if isinstance(found, Runs) and found.band is None and isinstance(rest, Band):
            return replace(found, band=rest, is_exact=found.is_exact and rest.is_exact)
        return None if found is None else found.inexact()


@final
class _Opposite(Mask):
    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self.mask = mask

    def check(self, grid: Grid) -> None:
        self.mask.check(grid)

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        cover = self.mask.cover(grid, rows, keys)
        if cover is None:
            return None
        return Cover.NONE if cover is Cover.ALL else Cover.ALL

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        return ~self.mask.pairs(grid, rows, keys)

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        return self.mask.extent(grid)

    def form(self, grid: Grid) -> Form | None:
        return None


def _opposite(mask: Mask) -> Mask:
    """``~mask``, which torch.compile cannot trace as an operator of objects."""
    return mask.mask if isinstance(mask, _Opposite) else _Opposite(mask)


def check_device(name: str, tensor: Tensor, grid: Grid) -> None:
    """Raise ShapeError unless a mask's tensor is where the queries are."""
    if tensor.device != grid.device:
        raise ShapeError(
            f"{name} must be on the device of the query, {grid.device}; got {tensor.device}. "
            "Make the mask of a tensor that is there."
        )


def _as_mask_operand(other: object) -> Mask:
    return as_mask(other)  # type: ignore[arg-type]


def _of_rows(tile: Tensor | None, chunk: range) -> Tensor | None:
    """The part of a tile that batch rows ``chunk`` have."""
    if tile is None or tile.dim() < 4 or tile.shape[0] == 1:
        return tile
    return tile[chunk.start : chunk.stop]
