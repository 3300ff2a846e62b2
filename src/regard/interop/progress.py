"""How far a model has come: which calls of its attention belong to one pass over a text.

A pass is a forward of the whole model, or all steps of a cached generation.
"""

Key = tuple[str, int, str]


class Progress:
    """Follows the calls of a model's attention, one after the other.

    Attributes:
        number: Of the pass, from 0.

    Example:
        >>> progress, place = Progress(), ("decoder", 0, "layers.0")
        >>> progress.place_of(place, 3, 0), progress.place_of(place, 1, 3)
        ((0, 0), (0, 3))
        >>> progress.place_of(place, 3, 0), progress.number
        ((0, 0), 1)

        One module that is all layers of a model, as in ALBERT:

        >>> [progress.place_of(("encoder", 0, "layer"), 3, 0, forward=1) for _ in range(3)]
        [(0, 0), (1, 0), (2, 0)]
    """

    def __init__(self) -> None:
        self.number = 0
        self._reach: dict[Key, int] = {}
        self._written: int | None = None
        self._forward = 0
        # By kind, in the forward that goes on: the module that was called last, and how many layers
        # were calls of a module that had been called before.
        self._last: dict[str, Key] = {}
        self._again: dict[str, int] = {}
        self._placed = (0, 0)

    def place_of(
        self, key: Key, queries: int, first: int, *, forward: int = 0, is_again: bool = False
    ) -> tuple[int, int]:
        """Layer of a call, and the position of its first query.

        Args:
            key: Kind, layer and name of the attention that is called.
            queries: N.
            first: The place of the first query among the keys, where they are of one sequence.
            forward: The number of the model's forward, from 1; 0 where that is not known.
            is_again: Whether it is the last call again, with other values.
        """
        if not is_again:
            self._placed = self._place_of(key, queries, first, forward)
        return self._placed

    def _place_of(self, key: Key, queries: int, first: int, forward: int) -> tuple[int, int]:
        kind = key[0]
        if forward != self._forward:
            self._forward = forward
            self._last.clear()
            self._again.clear()
        if forward and self._last.get(kind) == key:
            reach = self._reach.get(self._key_of(key))
            if reach is not None and not self._goes_on(kind, reach, queries, first):
                self._again[kind] = self._again.get(kind, 0) + 1
        self._last[kind] = key
        placed = self._key_of(key)
        return placed[1], self._start_of(placed, queries, first)

    def _key_of(self, key: Key) -> Key:
        kind, layer, name = key
        return kind, layer + self._again.get(kind, 0), name

    def _start_of(self, key: Key, queries: int, first: int) -> int:
        kind, reach = key[0], self._reach.get(key)
        start = first if kind == "decoder" else 0
        if kind == "cross" and reach is None and self._written is not None:
            start = max(0, self._written - queries)
        if reach is not None:
            if self._goes_on(kind, reach, queries, first):
                start = reach
            else:
                self.number, self._written = self.number + 1, None
                self._reach.clear()
        self._reach[key] = start + queries
        if kind == "decoder":
            self._written = start + queries
        return start

    def _goes_on(self, kind: str, reach: int, queries: int, first: int) -> bool:
        """Whether a call takes up where the last one of the same attention ended."""
        if kind == "decoder":
            return first == reach
        # Who attends to another sequence goes on with the decoder it is in; if it is in one that
        # does not look back, such as a recurrent one, one step at a time.
        if kind == "cross":
            return queries == 1 if self._written is None else reach + queries == self._written
        return False
