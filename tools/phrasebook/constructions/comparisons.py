"""Comparisons: more, as much, most, more and more, both."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.adjectives import (
    MOODS,
    PLACE_QUALITIES,
    PLACES_RATED,
    QUALITIES,
    TRAITS,
    Adjective,
)
from tools.phrasebook.lexicon.nouns import KINDS, Noun
from tools.phrasebook.lexicon.numbers import count
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import CITIES, COUNTRIES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.morphology import be
from tools.phrasebook.noun_phrases import (
    NAMES_OF_THINGS,
    NOBODYS,
    RELATIVES,
    known,
    other,
    owned,
    peer,
    single,
    somebody,
    spot,
    this,
)

_LASTING = (*TRAITS, *(mood for mood in MOODS if mood.zh in {"忙", "高兴", "紧张"}))

_LANDS = (*COUNTRIES, *CITIES)


def _compared(chance: Chance) -> tuple[Unit, Unit, Adjective]:
    """Two of a kind, and what both may be like."""
    draw = chance.below(100)
    if draw < 60:
        who = somebody(chance)
        return who.subject, other(chance, who).object, chance.deal(_LASTING)
    if draw < 80:
        adjective = chance.deal(_QUALITIES_OWNED)
        noun = chance.deal(_OWNED_BY[adjective.zh])
        return this_one(chance, noun), that_one(chance, noun), adjective
    adjective = chance.deal(PLACE_QUALITIES)
    fitting = tuple(place for each, place in PLACES_RATED if each is adjective)
    here, there = chance.shuffle(fitting if fitting and chance.odds(0.4) else CITIES)[:2]
    return spot(here), spot(there), adjective


_OWNED_BY = {
    each.zh: tuple(noun for noun in each.things if noun.zh not in NOBODYS | NAMES_OF_THINGS)
    for each in QUALITIES
}

_QUALITIES_OWNED = tuple(each for each in QUALITIES if _OWNED_BY[each.zh])


def this_one(chance: Chance, noun: Noun) -> Unit:
    """A thing to compare: 我的箱子, 这个箱子."""
    if not noun.is_counted:
        return owned(PRONOUNS[0], noun)
    return owned(PRONOUNS[0], noun) if chance.odds(0.5) else this(chance, noun)


def that_one(chance: Chance, noun: Noun) -> Unit:
    """What it is compared to: 他的箱子 / his suitcase."""
    return owned(chance.pick(PRONOUNS[1:]), noun)


def bi(chance: Chance) -> Unit:
    """他比我高 / He is taller than me."""
    first, second, adjective = _compared(chance)
    return build(
        "{who} 比#than {other} {more}",
        f"{{who}} {be(first.person)}~more {{more}} than#than {{other}}",
        who=first,
        other=second,
        more=adjective.more,
        name="bi",
    )


def bi_much(chance: Chance) -> Unit:
    """他比我高得多 / He is much taller than me; 高一点儿 / a little taller."""
    first, second, adjective = _compared(chance)
    if chance.odds(0.5):
        after, before = "得~much 多#much", "much#much"
    else:
        after, before = "一点儿#much", "a#much little#much"
    return build(
        f"{{who}} 比#than {{other}} {{more}} {after}",
        f"{{who}} {be(first.person)}~more {before} {{more}} than#than {{other}}",
        who=first,
        other=second,
        more=adjective.more,
        name="bi_much",
    )


def bi_years(chance: Chance) -> Unit:
    """他比我大三岁 / He is three years older than me."""
    who = peer(chance)
    whom = peer(chance)
    while whom.zh == who.zh:
        whom = peer(chance)
    zh, en = chance.pick((("大", "older"), ("小", "younger")))
    number = chance.below(10) + 1
    return build(
        f"{{who}} 比#than {{other}} {zh}#more {{number}} 岁#years",
        f"{{who}} {be(who.person)}~more {{number}} {'years' if number > 1 else 'year'}#years "
        f"{en}#more than#than {{other}}",
        who=who.subject,
        other=whom.object,
        number=count(number),
        name="bi_years",
    )


def not_as(chance: Chance) -> Unit:
    """我没有他高 / I am not as tall as him."""
    first, second, adjective = _compared(chance)
    so = "那么~as" if chance.odds(0.4) else ""
    return build(
        f"{{who}} 没有#not~is {{other}} {so} {{how}}",
        f"{{who}} {be(first.person)}~is~how not#not as~how~as~not {{how}} as~not~how {{other}}",
        who=first,
        other=second,
        how=adjective.plain,
        name="not_as",
    )


def same_as(chance: Chance) -> Unit:
    """我跟他一样高 / I am as tall as him."""
    first, second, adjective = _compared(chance)
    return build(
        "{who} 跟~to {other} 一样#as {how}",
        f"{{who}} {be(first.person)}~how as#as {{how}} as~to~as {{other}}",
        who=first,
        other=second,
        how=adjective.plain,
        name="same_as",
    )


_CLASSES = (("我们班", "our class"), ("他们班", "their class"), ("我们学校", "our school"))


def most(chance: Chance) -> Unit:
    """他是我们班最高的学生 / He is the tallest student in our class."""
    adjective = chance.deal(TRAITS)
    who = chance.deal(_YOUNG)
    if chance.odds(0.5):
        zh, en = chance.pick(_CLASSES)
        group = build(f"{zh}#group!", f"in~group {en.replace(' ', '#group! ')}#group!")
        role = KINDS["role"][0] if "班" in zh else chance.pick(_AT_SCHOOL)
    else:
        group = build("{land}!", "in~land {land}!", land=spot(chance.deal(_LANDS)))
        role = chance.deal(_RENOWNED)
        adjective = chance.pick(_RENOWN)
        who = single(chance)
    ending = chance.odds(0.35)
    if ending:
        return build(
            "{who} 是#is {group} 最~most {most} 的~most {role} 之一#one",
            f"{{who}} {be(who.person)}#is one#one of#one the~role~most {{most}} {{role}} {{group}}",
            who=who.subject,
            group=group,
            most=adjective.most,
            role=role.many,
            name="most",
        )
    return build(
        "{who} 是#is {group} 最~most {most} 的~most {role}",
        f"{{who}} {be(who.person)}#is the~role~most {{most}} {{role}} {{group}}",
        who=who.subject,
        group=group,
        most=adjective.most,
        role=role.one,
        name="most",
    )


_YOUNG = (
    *NAMES,
    *PRONOUNS[2:4],
    *(named for named in RELATIVES if named.zh[1:] in {"弟弟", "妹妹", "儿子", "女儿", "同学"}),
)

_AT_SCHOOL = select(KINDS["role"], "学生 老师")

_RENOWNED = select(
    KINDS["role"], "演员 歌手 厨师 运动员 商人 舞蹈家 律师 画家 作家 科学家 教授 医生 记者"
)

_RENOWN = select(TRAITS, "有名 有钱 年轻 聪明 努力")


def more_and_more(chance: Chance) -> Unit:
    """苹果越来越贵了 / Apples are getting more and more expensive."""
    draw = chance.below(100)
    if draw < 60:
        who, adjective = somebody(chance).subject, chance.deal(_CHANGING)
    elif draw < 80:
        adjective, place = chance.deal(_CHANGING_PLACES)
        who = spot(chance.deal(_LANDS) if chance.odds(0.5) else place)
    else:
        adjective = chance.deal(_CHANGING_THINGS)
        who = this(chance, chance.deal(adjective.things))
    first, *rest = adjective.more.en
    more = f"{first}#more and~more {first}#more {' '.join(each + '#how' for each in rest)}"
    zh = f"越来越#more {adjective.zh}#how" if rest else f"越来越~more {adjective.zh}#more"
    return build(
        f"{{who}} {zh} 了~is",
        f"{{who}} {be(who.person)}~is getting~is~more~how {more}",
        who=who,
        name="more_and_more",
    )


_CHANGING = select(
    (*TRAITS, *MOODS),
    "高 胖 瘦 聪明 友好 努力 懒 有名 健康 强壮 有钱 勇敢 幽默 可爱 有耐心 有礼貌 "
    "忙 高兴 紧张 孤独 担心",
)

_CHANGING_PLACES = tuple(rated for rated in PLACES_RATED if rated[0].zh != "古老")
_CHANGING_THINGS = select(QUALITIES, "旧 脏 贵 便宜")


def both_and(chance: Chance) -> Unit:
    """这个苹果又大又甜 / This apple is both big and sweet."""
    draw = chance.below(100)
    if draw < 55:
        who = single(chance).subject
        first, second = chance.shuffle(chance.pick(_GOOD_PAIRS))[:2]
    else:
        noun, first, second = chance.deal(_DOUBLES)
        who = known(chance, noun)
    return build(
        "{who} 又#both {first} 又#and {second}",
        f"{{who}} {be(who.person)}~first both#both {{first}} and#and {{second}}",
        who=who,
        first=first.plain,
        second=second.plain,
        name="both_and",
    )


def of_people(zh: str) -> tuple[Adjective, ...]:
    """Qualities and moods of people by their Chinese names."""
    return select((*TRAITS, *MOODS), zh)


_GOOD_PAIRS = (
    of_people("聪明 努力 善良 友好 勇敢 诚实 有礼貌 有耐心 细心 幽默"),
    of_people("高 瘦 强壮 健康 年轻 有钱"),
    of_people("忙 累 饿 渴 困 难过 紧张 生气"),
    of_people("矮 胖 懒 穷"),
)

# Pairs of qualities that one thing can well have at once.
_TOGETHER = (
    "大 甜",
    "大 重",
    "大 舒服",
    "新 漂亮",
    "新 快",
    "旧 脏",
    "小 轻",
    "小 旧",
    "便宜 新鲜",
    "便宜 漂亮",
    "大 新鲜",
    "长 漂亮",
    "厚 重",
    "薄 轻",
    "干净 漂亮",
    "有用 便宜",
    "甜 新鲜",
    "贵 漂亮",
    "贵 重",
    "简单 有意思",
    "长 有意思",
    "难 复杂",
    "容易 简单",
    "舒服 漂亮",
    "小 漂亮",
    "短 有意思",
    "大 漂亮",
    "新 舒服",
    "新 贵",
    "旧 重",
    "甜 便宜",
    "好吃 便宜",
    "好吃 甜",
)


def _doubles() -> tuple[tuple[Noun, Adjective, Adjective], ...]:
    by_zh = {each.zh: each for each in QUALITIES}
    found = []
    for pair in _TOGETHER:
        first, second = (by_zh[zh] for zh in pair.split())
        found += [(noun, first, second) for noun in first.things if noun in second.things]
    return tuple(found)


_DOUBLES = _doubles()
