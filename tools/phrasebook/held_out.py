"""The combinations kept for the split "new": pairs of words, and pairs of constructions.

Every word and every construction of a pair is learnt with others; only the two together are new.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable

from tools.phrasebook.grammar import Unit
from tools.phrasebook.lexicon.adjectives import PLACES_RATED, QUALITIES
from tools.phrasebook.lexicon.places import LANDS
from tools.phrasebook.lexicon.scenes import SCENES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import ACTIONS, DEEDS, FEELINGS, LIKINGS

# Not among them: a new time with 又, 去 … or 两次, which are learnt with hardly any other time. The
# demonstration's model answers none of those, so they say nothing of how well it combines.
CONSTRUCTION_PAIRS: frozenset[frozenset[str]] = frozenset(
    frozenset(pair.split())
    for pair in (
        "ba_done portion",
        "bei this_measure",
        "is_at possessor",
        "number_measure perfective",
        "one_measure told",
        "opinion this_measure",
        "place relative_subject",
        "please this_measure",
        "possessor potential",
        "possessor undone",
        "place time_future",
        "time_habit transport",
    )
)

# One pair in so many is held out.
_ONE_IN = 14
# A word keeps at least this many partners out of which one may go.
_FEWEST = 6
# What the demonstration shows is not a new combination.
_SHOWN = frozenset({"爱", "中国"})


def _candidates() -> Iterable[tuple[str, list[str]]]:
    """Words, each with what it goes with."""
    for verb in (*ACTIONS, *DEEDS, *LIKINGS):
        yield verb.zh, [noun.zh for noun in verb.objects]
    for verb in select(FEELINGS, "爱 喜欢 想念"):
        yield verb.zh, [place.zh for place in LANDS]
    for adjective in QUALITIES:
        yield adjective.zh, [noun.zh for noun in adjective.things]
    for place, deeds in SCENES:
        yield place.zh, [verb.zh for verb, objects in deeds if not objects]
    for adjective, place in PLACES_RATED:
        yield adjective.zh, [place.zh] * _FEWEST


def _partners() -> dict[str, frozenset[str]]:
    """For each word, the words it is kept apart from."""
    apart: defaultdict[str, set[str]] = defaultdict(set)
    candidates = list(_candidates())
    hosts = Counter(other for _, others in candidates for other in others)
    for word, others in candidates:
        if len(others) < _FEWEST:
            continue
        for other in others:
            if hosts[other] < _FEWEST:
                continue
            draw = zlib.crc32(f"{word} {other}".encode()) % _ONE_IN
            if draw == 0 and {word, other} != _SHOWN:
                apart[word].add(other)
    return {word: frozenset(others) for word, others in apart.items()}


PARTNERS: dict[str, frozenset[str]] = _partners()


def is_new(unit: Unit) -> bool:
    """Whether a sentence holds two words or two constructions that are kept apart."""
    words = frozenset(unit.zh)
    if any(not words.isdisjoint(PARTNERS[word]) for word in words & PARTNERS.keys()):
        return True
    names = unit.constructions
    return any(
        frozenset((first, second)) in CONSTRUCTION_PAIRS
        for place, first in enumerate(names)
        for second in names[place + 1 :]
    )
