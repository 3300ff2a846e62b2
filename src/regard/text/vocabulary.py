"""A list of words, or of characters, with an id each, for text that is cut already."""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

from regard.text.pieces import PAD_ID, UNK_ID

# Ids of padding and of what is not in the list.
_SPECIAL = 2
assert (PAD_ID, UNK_ID) == (0, 1)


class Vocabulary:
    """Ids of units: 0 pads, 1 is unknown.

    Args:
        units: In the order of their ids, from 2.
        buckets: How many ids the unknown share by their spelling instead, so that one that comes
            twice has the same id, and seldom another's; 0 is id 1 for all.

    Example:
        >>> words = Vocabulary.learn(["a", "b", "a"], min_count=2)
        >>> words.ids(["a", "b"]), len(words)
        ([2, 1], 3)
        >>> Vocabulary(["a"], buckets=100).ids(["Wien", "a", "Graz", "Wien"])
        [36, 2, 73, 36]
    """

    def __init__(self, units: Sequence[str], *, buckets: int = 0) -> None:
        self.units, self.buckets = list(units), buckets
        self._ids = {unit: place for place, unit in enumerate(units, _SPECIAL)}

    @classmethod
    def learn(cls, units: Iterable[str], *, min_count: int = 1, buckets: int = 0) -> "Vocabulary":
        """The units that occur at least ``min_count`` times, the most frequent first."""
        counts = Counter(units)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls([unit for unit, count in ordered if count >= min_count], buckets=buckets)

    def __len__(self) -> int:
        return len(self.units) + _SPECIAL + self.buckets

    def ids(self, units: Iterable[str]) -> list[int]:
        """Their ids."""
        return [self._ids.get(unit) or self._unknown(unit) for unit in units]

    def _unknown(self, unit: str) -> int:
        """Where ``hash`` would give another id in every process, a checksum does not."""
        if not self.buckets:
            return UNK_ID
        return len(self.units) + _SPECIAL + zlib.crc32(unit.encode(errors="replace")) % self.buckets
