"""Who and what else: 也, 都, 只, 连…都, 除了…都, 除了…还."""

from tools.phrasebook.acts import leisure, pastime
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.reasons import LANGUAGES
from tools.phrasebook.constructions.statements import state
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import to_land
from tools.phrasebook.lexicon.nouns import KINDS, NOUNS, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import COUNTRIES
from tools.phrasebook.lexicon.verbs import LIKINGS
from tools.phrasebook.morphology import agreeing, inflect
from tools.phrasebook.noun_phrases import (
    RELATIVES,
    somebody,
    spot,
    the,
    this,
    to,
)


def except_one(chance: Chance) -> Unit:
    """除了汤姆，大家都喜欢音乐 / Everyone likes music except Tom."""
    who = chance.deal(_EXCEPTED)
    outside = "以外~except" if chance.odds(0.4) else ""
    # With 他们 a model learns which of the words is "except" and which is "everyone".
    are_they = chance.odds(0.35)
    zh = f"除了#except {{who}} {outside} ， {'他们#they' if are_they else '大家#all'} 都~all"
    draw = chance.below(100)
    if draw < 55:
        verb, verb_en = chance.pick((("喜欢", "like"), ("爱", "love"), ("学", "learn")))
        thing = chance.deal(_LANGUAGE_NOUNS).one if verb == "学" else general_liking(chance)
        all_like = (
            f"they#they all~all {verb_en}#verb"
            if are_they
            else f"everyone#all {inflect(verb_en, 'third')}#verb"
        )
        return build(
            f"{zh} {verb}#verb {{thing}}",
            f"{all_like} {{thing}} except#except {{who}}",
            who=who.object,
            thing=thing,
            name="except_one",
        )
    if draw < 80:
        all_have = "they#they have~has~go all~all" if are_they else "everyone#all has~has~go"
        return build(
            f"{zh} 去#go 过~has~go {{place}}",
            f"{all_have} been#go {{place}} except#except {{who}}",
            who=who.object,
            place=to_land(chance),
            name="except_one",
        )
    act = leisure(chance)
    all_want = "they#they all~all want#want" if are_they else "everyone#all wants#want"
    return build(
        f"{zh} 想#want {{act}}",
        f"{all_want} to~act~want {{act}} except#except {{who}}",
        who=who.object,
        act=act.form("base"),
        name="except_one",
    )


_EXCEPTED = (*PRONOUNS[:4], *NAMES, *RELATIVES[16:64])

_LANGUAGE_NOUNS = tuple(NOUNS[zh] for zh in sorted(set(LANGUAGES.values())))

_ALIKE = ("fruit", "vegetable", "snack", "drink", "subject", "sport", "taste", "dish", "pet")


def general_liking(chance: Chance) -> Unit:
    """Something in general that people like: 苹果."""
    return chance.deal(LIKINGS[0].objects).many


def besides(chance: Chance) -> Unit:
    """除了英语，他还会说法语 / Besides English, he can also speak French."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 50:
        first, second = (noun.one for noun in chance.shuffle(_LANGUAGE_NOUNS)[:2])
        return build(
            "除了#besides {first} ，#comma {who} 还#also 会#can 说#speak {second}",
            "besides#besides {first} ,#comma {who} can#can also#also speak#speak {second}",
            who=who.subject,
            first=first,
            second=second,
            name="besides",
        )
    if draw < 75:
        here, there = chance.shuffle(COUNTRIES)[:2]
        want = agreeing("want", who.person)
        return build(
            "除了#besides {first} ，#comma {who} 还#also 想#want 去#go {second}",
            f"besides#besides {{first}} ,#comma {{who}} also#also {want}#want to~go~want go#go "
            "{second}",
            who=who.subject,
            first=spot(here),
            second=to(there),
            name="besides",
        )
    kind = KINDS[chance.pick(_ALIKE)]
    first, second = (noun.many for noun in chance.shuffle(kind)[:2])
    like = agreeing("like", who.person)
    return build(
        "除了#besides {first} ，#comma {who} 还#also 喜欢#like {second}",
        f"besides#besides {{first}} ,#comma {{who}} also#also {like}#like {{second}}",
        who=who.subject,
        first=first,
        second=second,
        name="besides",
    )


def also(chance: Chance) -> Unit:
    """我也喜欢茶 / I like tea too; 我也不喜欢茶 / I do not like tea either."""
    who = somebody(chance)
    act = state(chance) if chance.odds(0.6) else pastime(chance)
    if chance.odds(0.35):
        return build(
            "{who} 也#also {act}",
            "{who} {act} either#also",
            who=who.subject,
            act=act.refused(who.person),
            name="also",
        )
    return build(
        "{who} 也#also {act}",
        "{who} {act} too#also",
        who=who.subject,
        act=act.now(who.person),
        name="also",
    )


def all_of_us(chance: Chance) -> Unit:
    """我们都喜欢音乐 / We all like music; 大家都喜欢音乐 / Everyone likes music."""
    who = chance.deal(_SEVERAL)
    draw = chance.below(100)
    act = state(chance) if draw < 60 else pastime(chance)
    if chance.odds(0.5):
        return build(
            "大家#all 都~all {act}",
            "everyone#all {act}",
            act=act.now("singular"),
            name="all_of_us",
        )
    return build(
        "{who} 都#all {act}",
        "{who} all#all {act}",
        who=who.subject,
        act=act.now("plural"),
        name="all_of_us",
    )


_SEVERAL = (PRONOUNS[4], PRONOUNS[5])


def both(chance: Chance) -> Unit:
    """我和汤姆都喜欢音乐 / Both Tom and I like music."""
    first = chance.deal(_PEOPLE)
    second = chance.deal(NAMES)
    while second.zh == first.zh:
        second = chance.deal(NAMES)
    act = state(chance) if chance.odds(0.6) else pastime(chance)
    swapped = first.zh == "我"
    left, right = ("second", "first") if swapped else ("first", "second")
    return build(
        "{first} 和#and {second} 都#both {act}",
        f"both#both {{{left}}} and#and {{{right}}} {{act}}",
        first=first.subject,
        second=second.subject,
        act=act.now("plural"),
        name="both",
    )


_PEOPLE = (*NAMES, *PRONOUNS[2:4], *PRONOUNS[:1], *PRONOUNS[:1], *PRONOUNS[:1])


def only(chance: Chance) -> Unit:
    """我只喝茶 / I only drink tea."""
    who = somebody(chance)
    act = state(chance) if chance.odds(0.4) else pastime(chance)
    return build(
        "{who} 只#only {act}",
        "{who} only#only {act}",
        who=who.subject,
        act=act.now(who.person),
        name="only",
    )


def even(chance: Chance) -> Unit:
    """连老师都不懂这个问题 / Even the teacher does not understand this question."""
    who = chance.deal(_EXPERTS)
    draw = chance.below(100)
    if draw < 50:
        act = _understanding(chance)
    else:
        doing = state(chance)
        act = doing.now(who.person) if chance.odds(0.6) else doing.refused(who.person)
    return build(
        "连#even {who} 都~even {act}", "even#even {who} {act}", who=who, act=act, name="even"
    )


def _understanding(chance: Chance) -> Unit:
    """不懂这个问题 / does not understand this question."""
    return build(
        "不#not~do 懂#know {thing}",
        "does~do~know not#not understand#know {thing}",
        thing=this(chance, chance.deal(_OBSCURE)),
    )


_OBSCURE = nouns("问题 诗 文章 小说 电影 画 计划 故事 信 地图 节目")

_EXPERTS = (
    *(the(noun) for noun in KINDS["role"]),
    *(the(NOUNS[zh]) for zh in ("孩子", "客人")),
    *(named.subject for named in NAMES),
)
