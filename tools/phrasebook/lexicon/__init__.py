"""The words of the phrasebook, by part of speech."""

from tools.phrasebook.lexicon.adjectives import (
    COLORS,
    MOODS,
    PLACE_QUALITIES,
    QUALITIES,
    TRAITS,
)
from tools.phrasebook.lexicon.nouns import NOUNS
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import BUILDINGS, CITIES, COUNTRIES, ROOMS
from tools.phrasebook.lexicon.times import (
    FUTURE,
    HABIT,
    LONG_FUTURE,
    LONG_HABIT,
    LONG_PAST,
    MONTHS,
    OFTEN,
    PAST,
    SEASONS,
    WEEKDAYS,
)
from tools.phrasebook.lexicon.verbs import (
    ACCIDENTS,
    ACTIONS,
    ACTIVITIES,
    DAILY,
    DEALINGS,
    DEEDS,
    FEELINGS,
    GO_TO_BED,
    LIKINGS,
    MILESTONES,
    OUTBURSTS,
    SPEAK,
    WANTS,
)

_VERBS = (
    *LIKINGS, *WANTS, *FEELINGS, *ACTIONS, *DEEDS, *ACCIDENTS, *DEALINGS, *ACTIVITIES, *DAILY,
    GO_TO_BED, *MILESTONES, *OUTBURSTS, SPEAK,
)  # fmt: skip
_TIMES = (
    *PAST, *LONG_PAST, *FUTURE, *LONG_FUTURE, *HABIT, *LONG_HABIT, *OFTEN, *WEEKDAYS, *MONTHS,
    *SEASONS,
)  # fmt: skip


def entries() -> frozenset[tuple[str, str]]:
    """Every lexical entry: a Chinese word with its English word. Numbers and years do not count."""
    found = {(noun.zh, noun.en) for noun in NOUNS.values()}
    for named in (*NAMES, *PRONOUNS):
        found.add((named.zh, " ".join(named.subject.en)))
    for place in (*BUILDINGS, *ROOMS, *COUNTRIES, *CITIES):
        found.add((place.zh, place.en))
    for adjective in (*TRAITS, *MOODS, *QUALITIES, *PLACE_QUALITIES, *COLORS):
        found.add((adjective.zh, adjective.en))
    for verb in _VERBS:
        found.add((verb.zh, verb.en))
    for unit in _TIMES:
        found.add((unit.zh[0], " ".join(unit.en)))
    return frozenset(found)


def lexicon_size() -> int:
    """How many lexical entries the phrasebook has."""
    return len(entries())
