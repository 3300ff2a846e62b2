"""A mask at fixed sizes, for backends, with a cache of its tensors."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from math import prod
from threading import Lock
from typing import Any, final
from weakref import ReferenceType, ref

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.masks.grid import Band, Cover, Form, Grid, Tile, as_tensor
from regard.errors import SettingError

_HIDDEN_BLOCK, _HIDDEN_ROWS = 2**20, 256
# The fewest keys whose being hidden is asked for by themselves.
_FINEST = 128
_PLACES_LOOKED_AT = 8

# Up to so many pairs, results cached for one mask serve all that are alike.
_PAIRS_SHARED = 2**14


class Rule(ABC):
    """Interface of masks on a grid of queries and keys: ``pairs``, and shortcuts to it.

    Attributes:
        alike: Equal for masks that hide the same at any sizes; None is this one alone.
    """

    alike: Hashable | None = None

    @abstractmethod
    def pairs(self, grid: Grid, rows: range, keys: range) -> Bool[Tensor, "..."]:
        """Visible pairs of ``rows`` and ``keys``; broadcasts to (B, H, len(rows), len(keys))."""

    def check(self, grid: Grid) -> None:  # noqa: B027  (most masks fit every grid)
        """Raise ShapeError if the mask cannot be applied to this grid. Unless said, it can."""

    def cover(self, grid: Grid, rows: range, keys: range) -> Cover | None:
        """Whether queries ``rows`` see all of ``keys`` or nothing; None: look at the pairs.

        Answered from the rule alone, without making a tensor. Unless said, nothing is known.
        """
        return None

    def extent(self, grid: Grid) -> tuple[int, int, int, int]:
        """The shape of the dense mask at most: one on the axes of (B, H, N, M) it ignores.

        Unless said, queries and keys differ, and batch rows and heads as in the first pair.
        """
        B, H = (1, 1, 1, 1, *self.pairs(grid, range(1), range(1)).shape)[-4:-2]
        return (B, H, grid.queries, grid.keys)

    def form(self, grid: Grid) -> Form | None:
        """A shape that all visible pairs lie in and that backends know, or None as unless said."""
        return None

    def formula(self, grid: Grid) -> Bool[Tensor, "..."]:
        """Visible pairs at once by operations of torch, where a compiler leaves the sizes open.

        Raises:
            SettingError: Unless said, there is none.
        """
        raise SettingError(
            "mask must be made of lengths(), prefix(), causal(), window() or a tensor to be "
            f"written out; got {type(self).__name__}."
        )

    @final
    def tile(self, grid: Grid, rows: range, keys: range) -> Tile:
        """Visible pairs of ``rows`` and ``keys``: all, none, or a boolean tensor."""
        cover = self.cover(grid, rows, keys)
        return self.pairs(grid, rows, keys) if cover is None else cover


class Memory:
    """Results for masks and calls, by keys that are equal wherever they hold; threads share them.

    Those for a mask are dropped with it: they may hold tensors, but never the mask. Of many, those
    that were not used for longest are dropped.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._entries: dict[tuple[Hashable, Hashable], _Entry] = {}
        # By id: masks, and keys of the entries for them; and those that are no longer alive.
        self._owners: dict[int, tuple[ReferenceType[Rule], list[Hashable]]] = {}
        self._dead: deque[int] = deque()
        self._uses, self._lock = count(), Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._entries)

    def get(self, mask: "Rule | None", pairs: int, key: Hashable) -> Any:
        """Return the entry for a mask over so many pairs and a key, or None."""
        owner = None if mask is None else (pairs <= _PAIRS_SHARED and mask.alike) or id(mask)
        entry = self._entries.get((owner, key))
        # Of a mask that is gone, another may have the id before it is forgotten.
        if entry is None or (entry.mask is not None and entry.mask() is not mask):
            return None
        entry.use = next(self._uses)
        return entry.value

    def keep(self, mask: "Rule | None", pairs: int, key: Hashable, value: object) -> None:
        """Store an entry; where there are too many, drop half of them."""
        owner = None if mask is None else (pairs <= _PAIRS_SHARED and mask.alike) or id(mask)
        if self._dead:
            self._forget_dead()
        with self._lock:
            alive = None
            if mask is not None and owner == id(mask):
                alive, keys = self._owners.get(owner, (None, []))
                if alive is None or alive() is not mask:
                    alive, keys = ref(mask, partial(self._forget, owner)), []
                    self._owners[owner] = alive, keys
                keys.append(key)
            self._entries[owner, key] = _Entry(value, next(self._uses), alive)
            if len(self._entries) > self._most:
                self._drop_half()
        if self._dead:
            self._forget_dead()

    def _drop_half(self) -> None:
        """Drop the least recently used half."""
        newest_last = sorted(self._entries.items(), key=lambda one: one[1].use)
        self._entries, self._owners = dict(newest_last[len(newest_last) // 2 :]), {}
        for (owner, key), entry in self._entries.items():
            if entry.mask is not None and isinstance(owner, int):
                self._owners.setdefault(owner, (entry.mask, []))[1].append(key)

    def _forget(self, owner: int, _: object) -> None:
        # Called wherever a mask is collected, perhaps while this thread stores an entry.
        self._dead.append(owner)
        self._forget_dead()

    def _forget_dead(self) -> None:
        """Drop entries of masks that are gone, unless a thread stores meanwhile: it then does."""
        if self._lock.acquire(blocking=False):
            try:
                while self._dead:
                    owner = self._dead.popleft()
                    alive, keys = self._owners.pop(owner, (None, []))
                    if alive is not None and alive() is not None:
                        self._owners[owner] = alive, keys  # of another mask with this id
                        continue
                    for key in keys:
                        self._entries.pop((owner, key), None)
            finally:
                self._lock.release()


@dataclass(slots=True)
class _Entry:
    value: Any
    use: int  # number of its last use
    mask: "ReferenceType[Rule] | None"  # None where it holds for all that are alike


MEMORY = Memory()


@final
class BoundMask:
    """A mask at fixed sizes, and the forms that backends ask for.

    Attributes:
        mask: The rule.
        grid: The sizes.

    Example:
        >>> from regard.attention import window
        >>> bound = window(before=1, after=0).bind(batch=1, heads=1, queries=4, keys=4)
        >>> bound.key_ranges(range(2, 4)), bound.width
        ((range(1, 4),), 2)
        >>> bound.penalty(torch.float32)
        tensor([[0., -inf, -inf, -inf],
                [0., 0., -inf, -inf],
                [-inf, 0., 0., -inf],
                [-inf, -inf, 0., 0.]])
    """

    __slots__ = ("__dict__", "mask")

    mask: Rule
    grid: Grid

    def __init__(self, mask: Rule, grid: Grid) -> None:
        self.mask, self.grid = mask, grid

    def __repr__(self) -> str:
        """The rule and the sizes."""
        return f"BoundMask({self.mask!r}, {self.grid!r})"

    @classmethod
    def of_results(cls, mask: Rule, results: dict[str, Any]) -> "BoundMask":
        """A mask with the results for its sizes, shared with all that are made of it."""
        bound = cls.__new__(cls)
        bound.mask, bound.__dict__ = mask, results
        return bound

    def tile(self, rows: range, keys: range) -> Tile:
        """Visible pairs of ``rows`` and ``keys``: all, none, or a boolean tensor."""
        if len(rows) == self.grid.queries and len(keys) == self.grid.keys:
            return self.whole
        return self.mask.tile(self.grid, rows, keys)

    def hidden(
        self, rows: range, keys: tuple[range, ...], batch: range
    ) -> Bool[Tensor, "..."] | None:
        """Hidden pairs of ``rows`` and ``keys`` in batch rows ``batch``; None if there are none.

        Broadcasts to (b, H, n, m), with pieces of keys one after the other.
        """
        parts = [self._hidden_of(rows, piece, batch) for piece in keys]
        if len(parts) == 1 or all(part is None for part in parts):
            return parts[0]
        nothing = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=self.grid.device)
        filled = [nothing if part is None else part for part in parts]
        lead = tuple(
            map(max, zip(*((1, 1, 1, *part.shape)[-4:-1] for part in filled), strict=True))
        )
        return torch.cat(
            [part.expand(*lead, len(k)) for part, k in zip(filled, keys, strict=True)], -1
        )

    def key_ranges(self, rows: range, *, smallest_gap: int = 1) -> tuple[range, ...]:
        """The keys that some query of ``rows`` may see, in pieces from the first to the last.

        Read off a form; else found by halving, from tiles that are known to be hidden.

        Args:
            rows: The queries.
            smallest_gap: How many hidden keys between two pieces keep them apart.
        """
        every = range(self.grid.keys)
        ranges = (
            self._runs(rows, every) if self.form is None else self.form.key_ranges(rows, every.stop)
        )
        joined: list[range] = []
        for keys in ranges:
            if joined and keys.start - joined[-1].stop < smallest_gap:
                joined[-1] = range(joined[-1].start, max(joined[-1].stop, keys.stop))
            elif keys:
                joined.append(keys)
        return tuple(joined)

    def _runs(self, rows: range, keys: range) -> list[range]:
        """Pieces of ``keys`` that are not known to be hidden."""
        cover = self.mask.cover(self.grid, rows, keys)
        if cover is Cover.NONE:
            return []
        if cover is Cover.ALL or len(keys) <= _FINEST:
            return [keys]
        middle = keys.start + len(keys) // 2
        left, right = range(keys.start, middle), range(middle, keys.stop)
        return self._runs(rows, left) + self._runs(rows, right)

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
        rows, keys = range(self.grid.queries), range(self.grid.keys)
        return self.mask.pairs(self.grid, rows, keys) if self.cover is None else self.cover

    @cached_property
    def whole_hidden(self) -> Bool[Tensor, "..."] | None:
        """Hidden pairs of all queries and keys, or None if there are none."""
        return None if self.whole is Cover.ALL else ~as_tensor(self.whole, self.grid)

    def _hidden_of(self, rows: range, keys: range, batch: range) -> Tensor | None:
        if len(rows) == self.grid.queries and len(keys) == self.grid.keys:
            return _of_rows(self.whole_hidden, batch)
        tile = self.tile(rows, keys)
        if tile is Cover.ALL:
            return None
        visible = _of_rows(as_tensor(tile, self.grid), batch)
        return None if visible is None else ~visible

    @property
    def is_range(self) -> bool:
        """Whether each query sees all keys from one position to another, and the mask knows."""
        return self.form is not None and self.form.is_exact

    @property
    def size(self) -> int:
        """The most elements that the dense mask has; known without making it."""
        return prod(self.mask.extent(self.grid))

    @cached_property
    def width(self) -> int:
        """About how many keys a query sees at most: read off a band, or looked up at a few."""
        N, M = self.grid.queries, self.grid.keys
        if isinstance(self.form, Band):
            least, most = self.form.least, self.form.most
            return M if least is None or most is None else max(0, most - least + 1)
        rows = range(0, N, max(1, N // _PLACES_LOOKED_AT))
        widths = (sum(map(len, self.key_ranges(range(n, n + 1)))) for n in rows)
        return max(widths, default=0)

    @cached_property
    def is_causal(self) -> bool:
        """Whether query i sees exactly the keys up to i, so that a flag says it all."""
        return self.form == Band(None, 0, is_exact=True)

    def dense(self) -> Bool[Tensor, "..."]:
        """The boolean tensor; broadcasts to (B, H, N, M), with size one where nothing differs."""
        return as_tensor(self.whole, self.grid)

    def penalty(self, dtype: torch.dtype) -> Float[Tensor, "..."]:
        """Zero where a key is visible and −inf where it is hidden; broadcasts to (B, H, N, M)."""
        name = str(dtype)
        penalty = vars(self).get(name)
        if penalty is None:
            visible = self.whole
            if not isinstance(visible, Tensor):
                visible = as_tensor(visible, self.grid)
            zeros = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
            penalty = vars(self)[name] = zeros.masked_fill_(~visible, float("-inf"))
        return penalty

    @cached_property
    def unseen(self) -> Bool[Tensor, "b h M 1"] | None:
        """Keys that no query sees, or None if it is known that there are none."""
        if self.cover is Cover.ALL:
            return None
        B, H, N, M = self.mask.extent(self.grid)
        visible = torch.zeros(B, H, 1, M, dtype=torch.bool, device=self.grid.device)
        if isinstance(self.form, Band) and self.form.is_exact:
            band = self.form.key_range(range(N), M)
            if len(band) == M:
                return None
            visible[..., band.start : band.stop] = True
        else:
            for rows, keys in self._visible_tiles(N, B * H):
                tile = as_tensor(self.tile(rows, keys), self.grid)
                visible[..., keys.start : keys.stop] |= tile.any(dim=-2, keepdim=True)
        hidden = ~visible.transpose(-1, -2)
        if not hidden.is_cuda and not bool(hidden.any()):
            return None
        return hidden.expand(B, H, self.grid.keys, 1)

    def _visible_tiles(self, queries: int, lanes: int) -> Iterator[tuple[range, range]]:
        """Tiles of the grid that hold all that is visible, ``lanes`` of them beside each other."""
        most = max(1, min(self.grid.keys, self.width + _FINEST))
        rows = max(1, min(_HIDDEN_ROWS, _HIDDEN_BLOCK // max(1, lanes * most)))
        for start in range(0, queries, rows):
            some = range(start, min(start + rows, queries))
            for keys in self.key_ranges(some):
                yield some, keys

    def unseen_of(self, key: Float[Tensor, "B G M D"]) -> Bool[Tensor, "b g M 1"] | None:
        """``hidden`` for keys that several heads may share: hidden from all that do."""
        hidden, groups = self.unseen, key.shape[1]
        if hidden is None or hidden.shape[1] in (1, groups):
            return hidden
        return hidden.reshape(hidden.shape[0], groups, -1, *hidden.shape[2:]).all(dim=2)


def _of_rows(tile: Tensor | None, batch: range) -> Tensor | None:
    """The part of a tile that batch rows ``batch`` have."""
    if tile is None or tile.dim() < 4 or tile.shape[0] == 1:
        return tile
    return tile[batch.start : batch.stop]
