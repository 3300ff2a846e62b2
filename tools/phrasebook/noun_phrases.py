"""Noun phrases: how many, which, whose and who.

Chinese marks what English articles say. A bare noun before its verb is definite (the key), after
it general (keys, water); 一 with a measure word is "a"; 这 and 那 are "this" and "that".
"""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.nouns import BIG, BULK, KINDS, Noun
from tools.phrasebook.lexicon.numbers import count
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from tools.phrasebook.lexicon.places import Place
from tools.phrasebook.morphology import plural

# Small numbers come up more often.
_NUMBERS = (2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10)
_FEW = (2, 2, 3)
# Nouns that need no article even where one thing is meant.
NAMES_OF_THINGS = frozenset(
    noun.zh for kind in ("subject", "language", "sport", "taste") for noun in KINDS[kind]
)


def the(noun: Noun) -> Unit:
    """A bare noun before its verb: the key, the gloves, the apples; but math."""
    thing = noun.many if noun.is_pair or noun.zh in BULK else noun.one
    if noun.zh in NAMES_OF_THINGS:
        return thing
    return build("{noun}!", "the~noun {noun}!", noun=thing, person=thing.person)


def one(noun: Noun) -> Unit:
    """一把钥匙 / a key; 一双鞋 / a pair of shoes; 一杯茶 / a cup of tea; 音乐 / music."""
    if noun.is_pair:
        return _grouped(
            "一~group", noun.measure, "a~group~noun pair~noun", noun, name="one_measure"
        )
    if noun.portion:
        measure, en = noun.portion
        return _grouped("一~group", measure, f"a~group~noun {en}", noun, name="portion")
    if not noun.is_counted:
        return noun.one
    return build(
        f"一~a {noun.measure}~a~noun {{noun}}!",
        "a~a~noun {noun}!",
        noun=noun.one,
        name="one_measure",
    )


def _grouped(zh: str, measure: str, en: str, noun: Noun, *, name: str, **parts: Unit) -> Unit:
    """A pair or portion of something: 双 is "pair", and "of" may go with it."""
    is_one = zh.startswith(("一", "这", "那"))
    return build(
        f"{zh} {measure}#group {{noun}}!",
        f"{en}#group of~group~noun {{noun}}!",
        noun=noun.many,
        person="singular" if is_one else "plural",
        name=name,
        **parts,
    )


def numbered(chance: Chance, noun: Noun) -> Unit:
    """三把钥匙 / three keys; 两杯茶 / two cups of tea."""
    number = count(chance.pick(_FEW if noun.zh in BIG else _NUMBERS))
    if noun.is_pair:
        return _grouped(
            "{number}",
            noun.measure,
            "{number} pairs~noun",
            noun,
            name="number_measure",
            number=number,
        )
    if noun.portion:
        measure, en = noun.portion
        return _grouped(
            "{number}", measure, f"{{number}} {plural(en)}", noun, name="portion", number=number
        )
    if not noun.is_counted:
        return noun.one
    return build(
        f"{{number}} {noun.measure}~number~noun {{noun}}!",
        "{number} {noun}!",
        number=number,
        noun=noun.many,
        person="plural",
        name="number_measure",
    )


def this(chance: Chance, noun: Noun) -> Unit:
    """这把钥匙 / this key; 那些花 / those flowers; 这杯茶 / this cup of tea; 音乐 / music."""
    zh, en = chance.pick((("这", "this"), ("那", "that")))
    if noun.is_pair:
        return _grouped(
            f"{zh}#which", noun.measure, f"{en}#which pair~noun", noun, name="this_measure"
        )
    if noun.portion:
        measure, group = noun.portion
        return _grouped(f"{zh}#which", measure, f"{en}#which {group}", noun, name="portion")
    if not noun.is_counted:
        return the(noun)
    if noun.zh not in BIG and chance.odds(0.2):
        several = "these" if en == "this" else "those"
        return build(
            f"{zh}些#which {{noun}}!",
            f"{several}#which {{noun}}!",
            noun=noun.many,
            person="plural",
        )
    return build(
        f"{zh}#which {noun.measure}~which~noun {{noun}}!",
        f"{en}#which {{noun}}!",
        noun=noun.one,
        name="this_measure",
    )


def owned(owner: Named, noun: Noun) -> Unit:
    """我的手机 / my cell phone; 小明的草莓 / Xiaoming's strawberries."""
    thing = noun.many if noun.is_pair or noun.zh in BULK else noun.one
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
        "{owner} 的~owner {noun}!",
        "{owner} {noun}!",
        owner=owner.owner,
        noun=thing,
        person=thing.person,
    )


def certain(chance: Chance, noun: Noun, manners: str) -> Unit:
    """A thing in one of the manners that suit its verb: 一把钥匙, 这把钥匙, 小明的钥匙.

    Args:
        chance: What decides.
        noun: The thing.
        manners: Letters: a one, n several, t this or that, o somebody's own.
    """
    manner = chance.pick(manners)
    if manner == "a":
        return one(noun)
    if manner == "n":
        return numbered(chance, noun)
    if manner == "t" or not noun.is_counted:
        return this(chance, noun)
    return owned(chance.deal(OWNERS), noun)


def definite(chance: Chance, noun: Noun) -> Unit:
    """这把钥匙, 我的钥匙 or 小明的钥匙: a thing already known."""
    return certain(chance, noun, "tto")


def known(chance: Chance, noun: Noun) -> Unit:
    """A thing to say something of: 这个箱子 or 我的箱子, but only 这只老虎, and 数学."""
    if noun.zh in NAMES_OF_THINGS:
        return noun.one
    if noun.zh in NOBODYS or chance.odds(0.5):
        return this(chance, noun)
    return owned(chance.deal(OWNERS), noun)


# What nobody has for their own.
NOBODYS = frozenset(noun.zh for kind in ("wild", "landscape", "show") for noun in KINDS[kind])


def _relative(owner: Named, noun: Noun) -> Named:
    assert owner.owner is not None
    unit = build("{owner} {noun}!", "{owner} {noun}!", owner=owner.owner, noun=noun.one)
    again = "she" if noun.zh in _WOMEN else "he"
    return Named("".join(unit.zh), unit, unit, None, "singular", again)


def _role(noun: Noun) -> Named:
    unit = the(noun)
    return Named(noun.zh, unit, unit, None, "singular", "he")


_WOMEN = {"妈妈", "姐姐", "妹妹", "奶奶", "阿姨", "女儿"}

# 我妈妈 / my mother: relatives take their owner without 的.
RELATIVES: tuple[Named, ...] = tuple(
    _relative(owner, noun) for owner in PRONOUNS[:4] for noun in KINDS["relative"]
)
ROLES: tuple[Named, ...] = tuple(_role(noun) for noun in KINDS["role"])
OWNERS: tuple[Named, ...] = (*PRONOUNS, *PRONOUNS, *NAMES)
YOU = PRONOUNS[1]

_SPEAKERS = tuple(named for named in PRONOUNS if named.zh != "你")
_ASKED = tuple(named for named in PRONOUNS if named.zh not in {"我", "我们"})
_OTHERS_RELATIVES = tuple(named for named in RELATIVES if named.zh[0] != "我")
_OF_KNOWN_SEX = tuple(
    named for named in RELATIVES if not named.zh.endswith(("朋友", "同学", "同事", "邻居"))
)
PEERS = tuple(
    named
    for named in RELATIVES
    if named.zh[1:] in {"哥哥", "姐姐", "弟弟", "妹妹", "朋友", "同学", "同事", "邻居"}
)
ELDERS = tuple(named for named in RELATIVES if named.zh[1:] in {"爷爷", "奶奶"})
PARENTS = tuple(named for named in RELATIVES if named.zh[1:] in {"爸爸", "妈妈", "叔叔", "阿姨"})
CHILDREN = tuple(named for named in RELATIVES if named.zh[1:] in {"儿子", "女儿"})
_SINGULAR_SPEAKERS = tuple(named for named in _SPEAKERS if named.person != "plural")


def somebody(chance: Chance) -> Named:
    """Anyone a statement can be about."""
    draw = chance.below(100)
    if draw < 52:
        return chance.deal(_SPEAKERS)
    if draw < 74:
        return chance.deal(NAMES)
    return chance.deal(RELATIVES) if draw < 92 else chance.deal(ROLES)


def familiar(chance: Chance) -> Named:
    """Anyone English can mention again as he, she, we or they."""
    draw = chance.below(100)
    if draw < 55:
        return chance.deal(_SPEAKERS)
    return chance.deal(NAMES) if draw < 80 else chance.deal(_OF_KNOWN_SEX)


def single(chance: Chance) -> Named:
    """One person, not several."""
    draw = chance.below(100)
    if draw < 45:
        return chance.deal(_SINGULAR_SPEAKERS)
    return chance.deal(NAMES) if draw < 72 else chance.deal(RELATIVES)


def peer(chance: Chance) -> Named:
    """One person who may be of any age, and not an elder or child of the family."""
    draw = chance.below(100)
    if draw < 40:
        return chance.deal(_SINGULAR_SPEAKERS)
    return chance.deal(NAMES) if draw < 72 else chance.deal(PEERS)


def asked(chance: Chance) -> Named:
    """Anyone a question can be about: not the one who asks."""
    draw = chance.below(100)
    if draw < 60:
        return chance.deal(_ASKED)
    return chance.deal(NAMES) if draw < 80 else chance.deal(_OTHERS_RELATIVES)


def other(chance: Chance, first: Named) -> Named:
    """Somebody else: not 我 with 我们, nor 他 with 他们."""
    while True:
        second = somebody(chance) if chance.odds(0.85) else YOU
        if not _overlap(first.zh, second.zh):
            return second


def _overlap(first: str, second: str) -> bool:
    """Whether two are the same, or one pronoun holds the other."""
    return first == second or first + "们" == second or first == second + "们"


def at(place: Place) -> Unit:
    """在图书馆 / in the library."""
    return build(
        "在#at {place}!",
        f"{place.preposition}#at~place {_article(place)}{{place}}!",
        place=place.bare,
    )


def spot(place: Place) -> Unit:
    """A place by its name alone: 图书馆 / the library; 中国 / China."""
    article = "" if place.is_land else "the~place "
    return build("{place}!", f"{article}{{place}}!", place=place.bare)


def to(place: Place) -> Unit:
    """A place gone to: 图书馆 / to the library; 学校 / to school."""
    return build("{place}!", f"to~place {_article(place)}{{place}}!", place=place.bare)


def _article(place: Place) -> str:
    return "the~place " if place.has_article else ""
