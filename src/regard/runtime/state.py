"""State of a prepared decoder between two tokens: rows that point into one store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int32, Int64
from torch import Tensor

from regard.kernels.threads import parallel_rows
from regard.kernels.transformer.decoder import gather
from regard.runtime.memory import room_of

# Positions of a new store; they double as answers grow.
_PLACES = 8


class Store:
    """Keys and values of every layer, slot and place; a step writes one place of all layers.

    A place is written once. Who goes on from an earlier state gets a store of its own.

    Args:
        layers: Of the decoder.
        slots: As many rows may be written at a place.
        width: Of what a layer keeps.
        filled: Positions that are written, or are about to be.

    Attributes:
        kept: Keys and values side by side, (L, S, T, W): those of a slot are read in a row.
        filled: Positions that are written.
    """

    def __init__(self, layers: int, slots: int, width: int, *, filled: int = 0) -> None:
        places = _PLACES
        while places <= filled:
            places *= 2
        self.kept: Float32[np.ndarray, "L S T W"] = room_of((layers, slots, places, width))
        self.filled = filled

    def has_room(self, length: int, rows: int) -> bool:
        """Whether place ``length`` can be written for so many rows."""
        _, slots, places, _ = self.kept.shape
        return length == self.filled and length < places and rows <= slots

    def of_rows(self, ancestors: Int32[np.ndarray, "R t"]) -> "Store":
        """A store with a slot for each row, and room for one more place at least.

        What belongs to no row any more stays behind: of a batch that is nearly done, nearly all.

        Args:
            ancestors: The slot that each row had at each place.
        """
        (layers, _, _, width), (rows, filled) = self.kept.shape, ancestors.shape
        made = Store(layers, rows, width, filled=filled)
        args = (self.kept, ancestors, made.kept)
        parallel_rows(rows, layers * filled * width, lambda *part: gather(*part, *args))
        return made


@dataclass(frozen=True, eq=False)
class PreparedState:
    """Decoder state between two tokens.

    Attributes:
        store: Keys and values of the places so far.
        ancestors: The slot that each row had at each place.
        starts: The first place that each row sees: padding stands before it.
        length: Positions so far.
        sentences: The source of each row.
        memory: Keys and values of the sources, by layer; without entries there are none.
        lengths: How many places of each source are real.
        pending: The last tokens of prompts, not read yet; they take the place of the next step's.
        queries: What each layer asked the sources at the last place; nothing after rows are chosen.
    """

    store: Store
    ancestors: Int32[np.ndarray, "R T"]
    starts: Int32[np.ndarray, " R"]
    length: int
    sentences: Int64[np.ndarray, " R"]
    memory: Float32[np.ndarray, "L B M W"]
    lengths: Int64[np.ndarray, " B"]
    pending: Int[Tensor, " R"] | None = None
    queries: Sequence[Float32[np.ndarray, "R H D"]] = ()

    @property
    def asked(self) -> dict[int, Float[Tensor, "R H 1 D"]]:
        """Cross-attention queries of each layer at the last position."""
        return {
            layer: torch.from_numpy(query)[:, :, None] for layer, query in enumerate(self.queries)
        }

    def select(self, rows: Int[Tensor, " K"]) -> "PreparedState":
        """The state of these rows, in this order: what they have seen stays where it is."""
        kept = rows.numpy()
        # Written out: ``replace`` would take twice as long, at each step of a search.
        return PreparedState(
            store=self.store,
            ancestors=self.ancestors[kept],
            starts=self.starts[kept],
            length=self.length,
            sentences=self.sentences[kept],
            memory=self.memory,
            lengths=self.lengths,
            pending=None if self.pending is None else self.pending[rows],
        )

    def with_room(self) -> "PreparedState":
        """Grow the state so that its next position can be written."""
        if self.store.has_room(self.length, len(self.sentences)):
            return self
        store = self.store.of_rows(self.ancestors[:, : self.length])
        return replace(self, store=store, ancestors=_themselves(store))

    def after(self, queries: Sequence[Float32[np.ndarray, "R H D"]] = ()) -> "PreparedState":
        """The state whose place ``length`` is written, and what was asked there."""
        self.ancestors[:, self.length] = np.arange(len(self.sentences))
        self.store.filled = self.length + 1
        return PreparedState(
            store=self.store,
            ancestors=self.ancestors,
            starts=self.starts,
            length=self.length + 1,
            sentences=self.sentences,
            memory=self.memory,
            lengths=self.lengths,
            queries=queries,
        )


def begin(
    rows: int,
    layers: int,
    width: int,
    *,
    memory: Float32[np.ndarray, "L B M W"],
    lengths: Int[Tensor, " B"] | None = None,
    length: int = 0,
) -> PreparedState:
    """The state of so many rows that have seen nothing of answers, a row for each source.

    Args:
        rows: How many.
        layers: Of the decoder.
        width: Of what a layer keeps of a place: a key and a value side by side, all heads together.
        memory: What stands in the sources.
        lengths: How many places of each source are real.
        length: Positions that the caller fills with what rows have seen before.
    """
    store = Store(layers, rows, width, filled=length)
    return PreparedState(
        store=store,
        ancestors=_themselves(store),
        starts=np.zeros(rows, np.int32),
        length=length,
        sentences=np.arange(rows),
        memory=memory,
        lengths=np.zeros(0, np.int64) if lengths is None else lengths.to(torch.int64).numpy(),
    )


def _themselves(store: Store) -> Int32[np.ndarray, "S T"]:
    """The ancestors of rows that have been in their slots from the beginning."""
    slots, places = store.kept.shape[1:3]
    return np.repeat(np.arange(slots, dtype=np.int32)[:, None], places, axis=1)
