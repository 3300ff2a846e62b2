"""State of a packed decoder between two tokens: rows that point into one store."""

import ctypes
import math
import mmap
import sys
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int, Int32, Int64
from torch import Tensor

from regard.kernels.threads import parallel_rows
from regard.kernels.transformer.layers import gather
from regard.layers.inputs import valid_row_array
from regard.runtime.base import PackedState

# Positions of a new store; they double as answers grow. Memory is taken as they are written.
_POSITIONS = 64
# Bytes from which an array has pages of its own.
_OWN_PAGES = 2**20


def empty(shape: tuple[int, ...]) -> Float32[np.ndarray, "..."]:
    """An uninitialised array whose memory goes back to the system, which glibc would keep."""
    size = 4 * math.prod(shape)
    if sys.platform != "linux" or size < _OWN_PAGES:
        return np.empty(shape, np.float32)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.float32).reshape(shape)


def trim_memory() -> None:
    """Give free memory back to the system: glibc keeps that of matrices of up to 32 MiB."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


class Store:
    """Keys and values side by side, (L, T, S, W); ``filled`` positions are written, each once."""

    def __init__(self, layers: int, slots: int, width: int, *, filled: int = 0) -> None:
        positions = _POSITIONS
        while positions <= filled:
            positions *= 2
        self.cache: Float32[np.ndarray, "L T S W"] = empty((layers, positions, slots, width))
        self.filled, self.slots = filled, np.arange(slots, dtype=np.int32)

    def has_room(self, length: int, rows: int) -> bool:
        """Whether position ``length`` can be written for so many rows."""
        _, positions, slots, _ = self.cache.shape
        return length == self.filled and length < positions and rows <= slots

    def of_rows(self, ancestors: Int32[np.ndarray, "R t"]) -> "Store":
        """Copy the past of each row, by its slots so far, with room for one more position."""
        (layers, _, _, width), (rows, filled) = self.cache.shape, ancestors.shape
        store = Store(layers, rows, width, filled=filled)
        if filled:
            operations = layers * filled * width
            parallel_rows(rows, operations, gather, self.cache, ancestors, store.cache)
        return store

    def new_ancestors(self) -> Int32[np.ndarray, "S T"]:
        """The ancestors of rows that have been in their slots from the beginning."""
        return np.repeat(self.slots[:, None], self.cache.shape[1], axis=1)


@dataclass(frozen=True, eq=False)
class PreparedState(PackedState):
    """Decoder state between two tokens."""

    store: Store
    ancestors: Int32[np.ndarray, "R T"]  # the slot of each row at each position
    starts: Int32[np.ndarray, " R"]  # the first position that each row sees, after padding
    length: int
    memory: Float32[np.ndarray, "L B M W"]  # keys and values of the sources
    lengths: Int64[np.ndarray, " B"]  # of the sources
    is_padded: bool = False  # whether any row starts later than at 0

    def select(self, rows: Int[Tensor, " K"]) -> "PreparedState":
        """The state of these rows, in this order; copies no keys and values."""
        chosen = valid_row_array(rows, self.num_rows)
        return self._with(
            ancestors=self.ancestors[chosen],
            starts=self.starts[chosen],
            sentences=self.sentences[chosen],
            pending=None if self.pending is None else self.pending[rows],
        )

    def divided(self, rows: Int[Tensor, " K"]) -> "PreparedState":
        """The state of these rows, in a store of their own."""
        return self.select(rows)._moved()

    def with_room(self) -> "PreparedState":
        """Grow the state so that its next position can be written."""
        return self if self.store.has_room(self.length, self.num_rows) else self._moved()

    def _moved(self) -> "PreparedState":
        """The state in a store of its own, with room for one more position."""
        store = self.store.of_rows(self.ancestors[:, : self.length])
        return self._with(store=store, ancestors=store.new_ancestors())

    def _with(self, **changes: object) -> "PreparedState":
        """The state with some fields changed, sooner than dataclasses do it."""
        state = object.__new__(PreparedState)
        vars(state).update(vars(self), **changes)
        return state

    def after(self) -> "PreparedState":
        """The state once position ``length`` is written."""
        self.ancestors[:, self.length] = self.store.slots[: self.sentences.size]
        return self.advanced(1)

    def advanced(self, positions: int) -> "PreparedState":
        """The state once so many positions are written, with their slots."""
        self.store.filled = self.length + positions
        return self._with(length=self.length + positions, pending=None)
