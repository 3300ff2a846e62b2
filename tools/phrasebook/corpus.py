"""The phrasebook itself: 40,000 pairs drawn from the grammar, and how they are split."""

from collections import Counter

from regard.text.phrasebook import Phrase, Split
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions import CONSTRUCTIONS, WEIGHTS
from tools.phrasebook.grammar import Unit, build, word
from tools.phrasebook.held_out import is_new
from tools.phrasebook.surface import finish

SIZES: dict[Split, int] = {"train": 36_000, "valid": 1_000, "test": 1_500, "new": 1_500}
# No construction holds more of the pairs than this.
LARGEST_SHARE = 0.06
# How many of the statements carry no full stop in Chinese.
UNSTOPPED_SHARE = 0.15
# A word outside the training pairs stands in them at least so often.
FEWEST_IN_TRAIN = 8
# The one sentence that is always tested.
SHOWN = "我爱中国"

_SEED = 20170612
# A sentence without a word this rare gives way to another, should that have one.
_RARE = 60
_MARKS = str.maketrans("", "", "。，？！.,?!' ")


def draw() -> dict[Split, list[Phrase]]:
    """All splits, the same on every machine.

    "new" holds sentences with two words or two constructions that never occur together in the other
    splits.
    """
    chance = Chance(_SEED)
    known, new = _draw(chance)
    counts = Counter(word for phrase in known for word in _words(phrase))
    common = {word for word, count in counts.items() if count >= 2 * FEWEST_IN_TRAIN}
    shown = [phrase for phrase in known if phrase.source == SHOWN]
    others = chance.shuffle([phrase for phrase in known if phrase.source != SHOWN])
    tested, rest = _take(others, SIZES["test"] - len(shown), common)
    valid, train = _take(rest, SIZES["valid"], common)
    kept, _ = _take(new, SIZES["new"], common)
    return {"train": train, "valid": valid, "test": shown + tested, "new": kept}


def plain_key(text: str) -> str:
    """What is left of a sentence without case, punctuation and spaces.

    Example:
        >>> plain_key("I love China."), plain_key("我爱中国。")
        ('ilovechina', '我爱中国')
    """
    return text.translate(_MARKS).lower()


def _words(phrase: Phrase) -> list[str]:
    """The words of both sides."""
    source = [phrase.source[start:end] for start, end in phrase.source_words]
    return source + [phrase.target[start:end] for start, end in phrase.target_words]


def _take(phrases: list[Phrase], size: int, common: set[str]) -> tuple[list[Phrase], list[Phrase]]:
    """The first so many phrases of common words, and all others."""
    taken: list[Phrase] = []
    left: list[Phrase] = []
    for phrase in phrases:
        if len(taken) < size and common.issuperset(_words(phrase)):
            taken.append(phrase)
        else:
            left.append(phrase)
    return taken, left


def _draw(chance: Chance) -> tuple[list[Phrase], list[Phrase]]:
    """Distinct pairs: those of known combinations, and those of new ones (some to spare)."""
    known: list[Phrase] = []
    new: list[Phrase] = []
    wanted, spare = sum(SIZES.values()) - SIZES["new"], SIZES["new"] * 5 // 4
    seen: set[str] = set()
    drawn: Counter[str] = Counter()
    words: Counter[str] = Counter()
    names = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
    known.append(finish(_shown(), stop=False))
    seen |= {plain_key(known[0].source), plain_key(known[0].target)}
    while len(known) < wanted or len(new) < spare:
        make = CONSTRUCTIONS[chance.pick(names)]
        unit = make(chance)
        if _rarest(unit, words) > _RARE:
            unit = min(unit, make(chance), key=lambda each: _rarest(each, words))
        zh = "".join(unit.zh)
        keys = {plain_key(zh), plain_key("".join(unit.en))}
        limit = LARGEST_SHARE * 0.97 * (len(known) + len(new) + 200)
        if keys & seen or any(drawn[name] >= limit for name in unit.constructions):
            continue
        part, size = (new, spare) if is_new(unit) else (known, wanted)
        if len(part) >= size:
            continue
        part.append(finish(unit, stop=not chance.odds(UNSTOPPED_SHARE)))
        seen |= keys
        drawn.update(unit.constructions)
        words.update(unit.zh)
        words.update(unit.en)
    return known, new


def _shown() -> Unit:
    """The one sentence that is always tested, whatever is drawn."""
    who = word("我", "I", person="first")
    return build("{who} 爱#love 中国#land", "{who} love#love China#land", who=who, name="plain")


def _rarest(unit: Unit, words: Counter[str]) -> int:
    """How often the rarest word of a sentence has come so far."""
    return min([words[word] for word in (*unit.zh, *unit.en)])
