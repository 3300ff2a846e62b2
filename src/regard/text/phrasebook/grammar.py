"""The core of the synchronous grammar: a phrase in two languages, and how phrases are put together.

A ``Unit`` holds the words of both sides and the links between them. ``build`` joins units by two
templates, one for each language, so that word order differs while the links come along.
"""

from collections.abc import Iterable
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
    zh, zh_starts, zh_heads = _fill(template.zh, slots, chinese=True)
    en, en_starts, en_heads = _fill(template.en, slots, chinese=False)
    links: list[tuple[int, int, bool]] = []
    for left, right, slot in template.same:
        a, b = zh_starts[left], en_starts[right]
        links += [(a + i, b + j, sure) for i, j, sure in slots[slot].links]
    for left, right, sure in template.tagged:
        links += [(i, j, sure) for i in zh_heads[left] for j in en_heads[right]]
    return Unit(
        tuple(zh),
        tuple(en),
        tuple(links),
        _heads(template.zh, zh_heads, len(zh)),
        _heads(template.en, en_heads, len(en)),
        person,
        _names(name, slots.values()),
    )


@dataclass(frozen=True, slots=True)
class _Item:
    """A word or slot of a template."""

    text: str
    is_slot: bool
    is_head: bool
    tags: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class _Template:
    """Two templates, read: their items, the slots they share, and what their tags link."""

    zh: tuple[_Item, ...]
    en: tuple[_Item, ...]
    same: tuple[tuple[int, int, str], ...]
    tagged: tuple[tuple[int, int, bool], ...]


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
                tagged.append((i, j, sure))
    return _Template(zh, en, tuple(same), tuple(tagged))


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


def _fill(
    items: tuple[_Item, ...], slots: dict[str, Unit], *, chinese: bool
) -> tuple[list[str], list[int], list[tuple[int, ...]]]:
    """The words of one side, where each item starts, and the heads of each item."""
    words: list[str] = []
    starts = []
    heads: list[tuple[int, ...]] = []
    for item in items:
        start = len(words)
        starts.append(start)
        if item.is_slot:
            unit = slots[item.text]
            words += unit.zh if chinese else unit.en
            head = unit.zh_head if chinese else unit.en_head
            heads.append(tuple([start + place for place in head]))
        else:
            words.append(item.text)
            heads.append((start,))
    return words, starts, heads


def _heads(items: tuple[_Item, ...], heads: list[tuple[int, ...]], length: int) -> tuple[int, ...]:
    marked = [head for item, head in zip(items, heads, strict=True) if item.is_head]
    return tuple([place for head in marked for place in head]) if marked else tuple(range(length))


def _names(name: str | None, parts: Iterable[Unit]) -> tuple[str, ...]:
    names = [name] if name else []
    for part in parts:
        names += [each for each in part.constructions if each not in names]
    return tuple(names)
