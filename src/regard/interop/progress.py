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
        >>> progress.start_of(place, 3, 0), progress.start_of(place, 1, 3)
        (0, 3)
        >>> progress.start_of(place, 3, 0), progress.number
        (0, 1)
    """

    def __init__(self) -> None:
        self.number = 0
        self._reach: dict[Key, int] = {}
        self._written: int | None = None

    def start_of(self, key: Key, queries: int, first: int) -> int:
        """The place of a call's first query in its sequence.

        Args:
            key: Kind, layer and name of the attention that is called.
            queries: N.
            first: The place of the first query among the keys, where they are of one sequence.
        """
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
