"""The core of the synchronous grammar: a phrase in two languages, and how phrases are put together.

A ``Unit`` holds the words of both sides and the links between them. ``build`` joins units by two
templates, one for each language, so that word order differs while the links come along.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

# Who an English verb agrees with: I, he / she / it / a name, or we / you / they / several.
Person = Literal["first", "singular", "plural"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A phrase in both languages at once.

    Attributes:
        zh: The Chinese words.
        en: The English words, not yet capitalised; "a" is still "a" before a vowel.
        links: (Chinese word, English word, sure) by number.
        zh_head: The Chinese words that other words link to when they name this unit.
        en_head: The English words likewise.
        person: What a verb with this unit as its subject agrees with.
        constructions: The constructions inside, each once.
    """

    zh: tuple[str, ...]
    en: tuple[str, ...]
    links: tuple[tuple[int, int, bool], ...] = ()
    zh_head: tuple[int, ...] = ()
    en_head: tuple[int, ...] = ()
    person: Person = "singular"
    constructions: tuple[str, ...] = ()


NOTHING = Unit((), ())


def word(zh: str, en: str, person: Person = "singular") -> Unit:
    """One Chinese word and the English words for it, all linked.

    Example:
        >>> word("手机", "cell phone").links
        ((0, 0, True), (0, 1, True))
    """
    words = tuple(en.split())
    places = tuple(range(len(words)))
    return Unit((zh,), words, tuple((0, j, True) for j in places), (0,), places, person)


def build(
    chinese: str,
    english: str,
    /,
    *,
    person: Person = "singular",
    name: str | None = None,
    **slots: Unit,
) -> Unit:
    """Two templates, filled with units, as one unit.

    A template is a line of words. ``{object}`` stands for the unit given as ``object`` (it may
    stand twice on a side). A word of its own may carry tags: words that share a tag on the two
    sides are linked, surely if both wrote ``#tag``, possibly if one wrote ``~tag``; a tag with the
    name of a slot links to the head of that slot. ``!`` after a word or slot makes it a head;
    without any, every word is.

    Args:
        chinese: The Chinese word order.
        english: The English word order.
        person: What a verb agrees with if the unit is its subject.
        name: The construction this is, if it is one.
        slots: What fills the templates.

    Example:
        >>> unit = build(
        ...     "{who} 把~lost {thing} 弄丢#lost 了~lost", "{who} lost#lost the~thing {thing}",
        ...     who=word("他", "he"), thing=word("钥匙", "key"))
        >>> " ".join(unit.zh), " ".join(unit.en)
        ('他 把 钥匙 弄丢 了', 'he lost the key')
        >>> sorted(unit.links)
        [(0, 0, True), (1, 1, False), (2, 2, False), (2, 3, True), (3, 1, True), (4, 1, False)]
    """
    template = _compile(chinese, english)
    zh, zh_starts = _place(template.zh, {slot: unit.zh for slot, unit in slots.items()})
    en, en_starts = _place(template.en, {slot: unit.en for slot, unit in slots.items()})
    zh_heads = {slot: unit.zh_head for slot, unit in slots.items()}
    en_heads = {slot: unit.en_head for slot, unit in slots.items()}
    links = []
    for left, right, slot in template.same:
        a, b = zh_starts[left], en_starts[right]
        for i, j, sure in slots[slot].links:
            links.append((a + i, b + j, sure))
    for left, right, zh_slot, en_slot, sure in template.tagged:
        a, b = zh_starts[left], en_starts[right]
        for i in zh_heads.get(zh_slot, _FIRST):
            for j in en_heads.get(en_slot, _FIRST):
                links.append((a + i, b + j, sure))
    return Unit(
        tuple(zh),
        tuple(en),
        tuple(links),
        _head(template.zh_heads, zh_starts, zh_heads, len(zh)),
        _head(template.en_heads, en_starts, en_heads, len(en)),
        person,
        _names(name, slots),
    )


# Where a word of a template has its head: at itself.
_FIRST = (0,)


@dataclass(frozen=True, slots=True)
class _Item:
    """A word or slot of a template."""

    text: str
    is_slot: bool
    is_head: bool
    tags: tuple[tuple[str, bool], ...]

    @property
    def slot(self) -> str:
        """The name of the slot; empty for a word."""
        return self.text if self.is_slot else ""


@dataclass(frozen=True, slots=True)
class _Template:
    """Two templates, read: their items, the slots they share, what tags link, and the heads."""

    zh: tuple[_Item, ...]
    en: tuple[_Item, ...]
    same: tuple[tuple[int, int, str], ...]
    tagged: tuple[tuple[int, int, str, str, bool], ...]
    zh_heads: tuple[tuple[int, str], ...]
    en_heads: tuple[tuple[int, str], ...]


@cache
def _compile(chinese: str, english: str) -> _Template:
    zh = tuple(_item(text) for text in chinese.split())
    en = tuple(_item(text) for text in english.split())
    slots = {item.text for item in (*zh, *en) if item.is_slot}
    names = {tag for item in (*zh, *en) for tag, sure in item.tags if sure} & slots
    assert not names, f"the slots {names} of {chinese!r} are linked by ~, not by #"
    same = []
    tagged = []
    for i, left in enumerate(zh):
        for j, right in enumerate(en):
            if left.is_slot and right.is_slot and left.text == right.text:
                same.append((i, j, left.text))
            for _, sure in _common(left, right):
                tagged.append((i, j, left.slot, right.slot, sure))
    zh_heads = tuple((i, item.slot) for i, item in enumerate(zh) if item.is_head)
    en_heads = tuple((j, item.slot) for j, item in enumerate(en) if item.is_head)
    return _Template(zh, en, tuple(same), tuple(tagged), zh_heads, en_heads)


def _item(text: str) -> _Item:
    """Reads ``{slot}!`` or ``word#sure~possible!``."""
    is_head = text.endswith("!") and len(text) > 1
    text = text[:-1] if is_head else text
    if text.startswith("{"):
        return _Item(text[1:-1], True, is_head, ())
    marked = text.replace("~", "\0~").replace("#", "\0#").split("\0")
    tags = tuple((mark[1:], mark[0] == "#") for mark in marked[1:])
    return _Item(marked[0], False, is_head, tags)


def _common(left: _Item, right: _Item) -> list[tuple[str, bool]]:
    """The tags that link two items, and whether surely."""
    if left.is_slot and right.is_slot:
        return []
    if left.is_slot:
        return [(tag, sure) for tag, sure in right.tags if tag == left.text]
    if right.is_slot:
        return [(tag, sure) for tag, sure in left.tags if tag == right.text]
    others = dict(right.tags)
    return [(tag, sure and others[tag]) for tag, sure in left.tags if tag in others]


def _place(
    items: tuple[_Item, ...], units: dict[str, tuple[str, ...]]
) -> tuple[list[str], list[int]]:
    """The words of one side, and where each item starts."""
    words: list[str] = []
    starts = []
    for item in items:
        starts.append(len(words))
        if item.is_slot:
            words += units[item.text]
        else:
            words.append(item.text)
    return words, starts


def _head(
    marked: tuple[tuple[int, str], ...],
    starts: list[int],
    heads: dict[str, tuple[int, ...]],
    length: int,
) -> tuple[int, ...]:
    """The heads of the marked items; every word if none is marked."""
    if not marked:
        return tuple(range(length))
    return tuple([starts[i] + place for i, slot in marked for place in heads.get(slot, _FIRST)])


def _names(name: str | None, slots: dict[str, Unit]) -> tuple[str, ...]:
    names = [name] if name else []
    for part in slots.values():
        for each in part.constructions:
            if each not in names:
                names.append(each)
    return tuple(names)
