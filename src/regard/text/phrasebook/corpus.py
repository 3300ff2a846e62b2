"""The phrasebook itself: 40,000 pairs drawn from the grammar, and how they are split."""

import zlib
from collections import Counter
from functools import lru_cache
from typing import Literal

from regard.choices import choose
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions import CONSTRUCTIONS
from regard.text.phrasebook.grammar import Unit
from regard.text.phrasebook.surface import Phrase, finish

Split = Literal["train", "valid", "test", "new"]

SIZES: dict[str, int] = {"train": 36_000, "valid": 1_000, "test": 1_500, "new": 1_500}
# No construction may hold more of the pairs than this.
LARGEST_SHARE = 0.06
# How many of the statements carry no full stop in Chinese.
UNSTOPPED_SHARE = 1 / 3
# The one sentence that is always tested.
SHOWN = "我爱中国"

_SEED = 20170612
_MARKS = str.maketrans("", "", "。，？！.,?!' ")


def phrases(split: Split) -> list[Phrase]:
    """The pairs of one split, the same on every machine.

    Args:
        split: "train", "valid", "test", or "new": sentences with a combination of two words or
            of two constructions that never occur together in the other splits.

    Raises:
        SettingError: There is no such split.

    Example:
        >>> [phrase.target for phrase in phrases("test") if phrase.source == "我爱中国"]
        ['I love China.']
    """
    choose("split", split, SIZES)
    return list(_splits()[split])


@lru_cache(maxsize=1)
def _splits() -> dict[str, list[Phrase]]:
    """All splits, drawn once per process."""
    known, new = _draw(Chance(_SEED))
    shown = [phrase for phrase in known if phrase.source == SHOWN]
    rest = Chance(_SEED + 1).shuffle([phrase for phrase in known if phrase.source != SHOWN])
    test = SIZES["test"] - len(shown)
    valid = test + SIZES["valid"]
    return {
        "train": rest[valid:],
        "valid": rest[test:valid],
        "test": shown + rest[:test],
        "new": new,
    }


def _draw(chance: Chance) -> tuple[list[Phrase], list[Phrase]]:
    """Distinct pairs: those of known combinations, and those of new ones."""
    known: list[Phrase] = []
    new: list[Phrase] = []
    wanted = sum(SIZES.values()) - SIZES["new"]
    seen: set[str] = set()
    drawn: Counter[str] = Counter()
    names = list(CONSTRUCTIONS)
    while len(known) < wanted or len(new) < SIZES["new"]:
        unit = CONSTRUCTIONS[chance.pick(names)](chance)
        zh, en = "".join(unit.zh), "".join(unit.en)
        keys = {plain_key(zh), plain_key(en)}
        total = len(known) + len(new)
        if keys & seen or _is_full(unit, drawn, total):
            continue
        is_new = _is_new(unit)
        if len(new if is_new else known) >= (SIZES["new"] if is_new else wanted):
            continue
        seen |= keys
        drawn.update(unit.constructions)
        stop = zh != SHOWN and not chance.odds(UNSTOPPED_SHARE)
        (new if is_new else known).append(finish(unit, stop=stop))
    return known, new


def plain_key(text: str) -> str:
    """What is left of a sentence without case, punctuation and spaces.

    Example:
        >>> plain_key("I love China."), plain_key("我爱中国。")
        ('ilovechina', '我爱中国')
    """
    return text.translate(_MARKS).lower()


def _is_full(unit: Unit, drawn: Counter[str], total: int) -> bool:
    limit = LARGEST_SHARE * 0.97 * (total + 200)
    return any(drawn[name] >= limit for name in unit.constructions)


def _is_new(unit: Unit) -> bool:
    """Whether two words of a sentence are among those kept apart."""
    words = unit.zh
    return any(
        zlib.crc32((first + second).encode()) % 997 < 2
        for place, first in enumerate(words)
        for second in words[place + 1 :]
    )
