"""Noun phrases: how many, which, whose and who.

Chinese marks what English articles say. A bare noun before its verb is definite (the key), after
it general (keys, water); 一 with a measure word is "a"; 这 and 那 are "this" and "that".
"""

from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import Unit, build, word
from regard.text.phrasebook.lexicon.nouns import KINDS, Noun
from regard.text.phrasebook.lexicon.numbers import count
from regard.text.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from regard.text.phrasebook.lexicon.places import Place


def the(noun: Noun) -> Unit:
    """A bare noun before its verb: the key, the gloves."""
    thing = noun.many if noun.is_pair else noun.one
    return build("{noun}!", "the~noun {noun}!", noun=thing, person=thing.person)


def one(noun: Noun) -> Unit:
    """一把钥匙 / a key; 一双鞋 / a pair of shoes; 茶 / tea."""
    if not noun.is_counted:
        return noun.one
    if noun.is_pair:
        return build(
            f"一~a {noun.measure}#pair {{noun}}!",
            "a~a~pair~noun pair#pair of~pair~noun {noun}!",
            noun=noun.one,
            name="one_measure",
        )
    return build(
        f"一~a {noun.measure}~a {{noun}}!", "a~a~noun {noun}!", noun=noun.one, name="one_measure"
    )


def numbered(chance: Chance, noun: Noun) -> Unit:
    """三把钥匙 / three keys."""
    number = count(chance.pick((2, 2, 3, 3, 4, 5, 6, 8, 10)))
    if noun.is_pair:
        return build(
            f"{{number}} {noun.measure}#pair {{noun}}!",
            "{number} pairs#pair of~pair~noun {noun}!",
            number=number,
            noun=noun.many,
            person="plural",
            name="number_measure",
        )
    return build(
        f"{{number}} {noun.measure}~number {{noun}}!",
        "{number} {noun}!",
        number=number,
        noun=noun.many,
        person="plural",
        name="number_measure",
    )


def this(chance: Chance, noun: Noun) -> Unit:
    """这把钥匙 / this key; 那些花 / those flowers."""
    if noun.is_pair:
        zh, en = chance.pick((("这", "this"), ("那", "that")))
        return build(
            f"{zh}#which {noun.measure}#pair {{noun}}!",
            f"{en}#which pair#pair of~pair~noun {{noun}}!",
            noun=noun.many,
            name="this_measure",
        )
    if chance.odds(0.25):
        zh, en = chance.pick((("这些", "these"), ("那些", "those")))
        return build(
            f"{zh}#which {{noun}}!", f"{en}#which {{noun}}!", noun=noun.many, person="plural"
        )
    zh, en = chance.pick((("这", "this"), ("那", "that")))
    return build(
        f"{zh}#which {noun.measure}~which {{noun}}!",
        f"{en}#which {{noun}}!",
        noun=noun.one,
        name="this_measure",
    )


def owned(owner: Named, noun: Noun) -> Unit:
    """我的手机 / my cell phone; 小明的手机 / Xiaoming's cell phone."""
    thing = noun.many if noun.is_pair else noun.one
    if owner.owner is None:
        return build(
            "{owner} 的#of {noun}!",
            "{owner} 's#of {noun}!",
            owner=owner.subject,
            noun=thing,
            person=thing.person,
            name="possessor",
        )
    return build(
        "{owner} 的~owner {noun}!", "{owner} {noun}!", owner=owner.owner, noun=thing,
        person=thing.person,
    )


def certain(chance: Chance, noun: Noun) -> Unit:
    """A thing that counts as one or more particular ones: 一把钥匙, 这把钥匙, 小明的钥匙."""
    if not noun.is_counted:
        return noun.one
    draw = chance.pick(range(100))
    if draw < 35:
        return one(noun)
    if draw < 60:
        return this(chance, noun)
    if draw < 75:
        return numbered(chance, noun)
    return owned(chance.pick(OWNERS), noun)


def definite(chance: Chance, noun: Noun) -> Unit:
    """这把钥匙, 我的钥匙 or 小明的钥匙: a thing already known."""
    return this(chance, noun) if chance.odds(0.4) else owned(chance.pick(OWNERS), noun)


def _relative(owner: Named, noun: Noun) -> Named:
    assert owner.owner is not None
    unit = build("{owner} {noun}!", "{owner} {noun}!", owner=owner.owner, noun=noun.one)
    return Named("".join(unit.zh), unit, unit, None, "singular")


def _role(noun: Noun) -> Named:
    unit = the(noun)
    return Named(noun.zh, unit, unit, None, "singular")


# 我妈妈 / my mother: relatives take their owner without 的.
RELATIVES: tuple[Named, ...] = tuple(
    _relative(owner, noun) for owner in PRONOUNS[:4] for noun in KINDS["relative"]
)
ROLES: tuple[Named, ...] = tuple(_role(noun) for noun in KINDS["role"])
OWNERS: tuple[Named, ...] = (*PRONOUNS, *PRONOUNS, *NAMES)

_SPEAKERS = tuple(named for named in PRONOUNS if named.zh != "你")
_ASKED = tuple(named for named in PRONOUNS if named.zh not in {"我", "我们"})
_OTHERS_RELATIVES = tuple(named for named in RELATIVES if named.zh[0] != "我")


def somebody(chance: Chance) -> Named:
    """Anyone a statement can be about."""
    draw = chance.pick(range(100))
    if draw < 52:
        return chance.pick(_SPEAKERS)
    if draw < 74:
        return chance.pick(NAMES)
    return chance.pick(RELATIVES) if draw < 92 else chance.pick(ROLES)


def asked(chance: Chance) -> Named:
    """Anyone a question can be about: not the one who asks."""
    draw = chance.pick(range(100))
    if draw < 60:
        return chance.pick(_ASKED)
    return chance.pick(NAMES) if draw < 80 else chance.pick(_OTHERS_RELATIVES)


def other(chance: Chance, first: Named) -> Named:
    """Somebody who is not in the first's group: neither 我 with 我们, nor 他 with 他妈妈."""
    while True:
        second = somebody(chance) if chance.odds(0.8) else PRONOUNS[1]
        if second.zh[0] != first.zh[0]:
            return second


def at(place: Place) -> Unit:
    """在图书馆 / in the library; its head is the place, so that 在 is linked apart."""
    return build(
        f"在#at {{place}}!", f"{place.preposition}#at {_article(place)}{{place}}!", place=place.bare
    )


def to(place: Place) -> Unit:
    """The place one goes to: 图书馆 / to the library."""
    return build("{place}!", f"to~place {_article(place)}{{place}}!", place=place.bare)


def spot(place: Place) -> Unit:
    """A place by its name alone: 图书馆 / the library; 中国 / China."""
    return build("{place}!", f"{_article(place)}{{place}}!", place=place.bare)


def _article(place: Place) -> str:
    return "the~place " if place.has_article else ""


HOME = word("家", "home")
