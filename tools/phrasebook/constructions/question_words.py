"""Question words stay where the answer would stand in Chinese and come first in English."""

from tools.phrasebook.acts import general, leisure, milestone, scene
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.calendar import BY_HOUR
from tools.phrasebook.constructions.statements import state
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import building, to_building, to_commute, to_land
from tools.phrasebook.lexicon.adjectives import MOODS, TRAITS, Adjective
from tools.phrasebook.lexicon.nouns import BIG, nouns
from tools.phrasebook.lexicon.people import PRONOUNS
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import HABIT
from tools.phrasebook.lexicon.verbs import ACTIONS, DEALINGS, DEEDS, FEELINGS
from tools.phrasebook.morphology import be, do
from tools.phrasebook.noun_phrases import asked, definite, owned


def what(chance: Chance) -> Unit:
    """你正在看什么？ / What are you reading? 你想买什么？ / What do you want to buy?"""
    who = asked(chance)
    if chance.odds(0.5):
        verb = chance.deal(_CLEAR_ACTIONS)
        return build(
            "{who} 正在~is~verb {verb} 什么#what ？#end",
            f"what#what {be(who.person)}~is~verb {{who}} {{verb}} ?#end",
            who=who.subject,
            verb=verb.forms["ing"],
            name="what",
        )
    zh, en = chance.pick((("想", "want"), ("打算", "plan")))
    return build(
        f"{{who}} {zh}#want {{verb}} 什么#what ？#end",
        f"what#what {do(who.person)}~want {{who}} {en}#want to~verb~want {{verb}} ?#end",
        who=who.subject,
        verb=chance.deal(_CLEAR_DEEDS).forms["base"],
        name="what",
    )


# Without 看, which is to read or to watch.
_CLEAR_ACTIONS = tuple(verb for verb in ACTIONS if verb.zh != "看")

_CLEAR_DEEDS = select(DEEDS, "借 寄 带 卖 买 吃 喝 听 写 画 做 种")


def who_is_it(chance: Chance) -> Unit:
    """你在等谁？ / Who are you waiting for? 你喜欢谁？ / Who do you like?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 30:
        return build(
            "{who} 在~is~verb {verb} 谁#whom ？#end",
            f"who#whom {be(who.person)}~is~verb {{who}} {{verb}} ?#end",
            who=who.subject,
            verb=chance.deal(_ONGOING).forms["ing"],
            name="who",
        )
    if draw < 60:
        return build(
            "{who} {verb} 谁#whom ？#end",
            f"who#whom {do(who.person)}~verb {{who}} {{verb}} ?#end",
            who=who.subject,
            verb=chance.deal(FEELINGS).forms["base"],
            name="who",
        )
    return build(
        "{who} 想#want {verb} 谁#whom ？#end",
        f"who#whom {do(who.person)}~want {{who}} want#want to~verb~want {{verb}} ?#end",
        who=who.subject,
        verb=chance.deal(DEALINGS).forms["base"],
        name="who",
    )


_ONGOING = select(DEALINGS, "等 找 帮助 照顾 批评 表扬")


def with_whom(chance: Chance) -> Unit:
    """你常常跟谁一起跳舞？ / Who do you often dance with?"""
    who = asked(chance)
    return build(
        "{who} 常常#often 跟#with 谁#whom 一起~with {act} ？#end",
        f"who#whom {do(who.person)}~act {{who}} often#often {{act}} with#with ?#end",
        who=who.subject,
        act=leisure(chance).form("base"),
        name="with_whom",
    )


def whose(chance: Chance) -> Unit:
    """这是谁的书？ / Whose book is this?"""
    noun = chance.deal(_BELONGINGS)
    zh, en = chance.pick((("这", "this"), ("那", "that")))
    several = "these" if en == "this" else "those"
    if noun.is_pair or (noun.zh not in BIG and chance.odds(0.35)):
        return build(
            f"{zh}些#this 是#is 谁#whom 的~whom {{noun}} ？#end",
            f"whose#whom {{noun}} are#is {several}#this ?#end",
            noun=noun.many,
            name="whose",
        )
    if chance.odds(0.5):
        return build(
            f"{zh}#this 是#is 谁#whom 的~whom {{noun}} ？#end",
            f"whose#whom {{noun}} is#is {en}#this ?#end",
            noun=noun.one,
            name="whose",
        )
    return build(
        f"{zh}#this {noun.measure}~this {{noun}} 是#is 谁#whom 的~whom ？#end",
        f"whose#whom is#is {en}#this {{noun}} ?#end",
        noun=noun.one,
        name="whose",
    )


_BELONGINGS = nouns(
    "carried clothing accessory book container tableware household pet car ridden instrument "
    "machine furniture"
)


def where(chance: Chance) -> Unit:
    """你在哪儿工作？ / Where do you work?"""
    who = asked(chance)
    doing, _ = scene(chance, single=False)
    return build(
        "{who} 常常#often 在~where 哪儿#where {act} ？#end",
        f"where#where {do(who.person)}~act {{who}} often#often {{act}} ?#end",
        who=who.subject,
        act=doing.form("base"),
        name="where",
    )


def where_to(chance: Chance) -> Unit:
    """你想去哪儿？ / Where do you want to go?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 25:
        zh, en = chance.pick((("想", "want"), ("打算", "plan"), ("希望", "hope")))
        return build(
            f"{{who}} {zh}#want 去#go 哪儿#where ？#end",
            f"where#where {do(who.person)}~want {{who}} {en}#want to~go~want go#go ?#end",
            who=who.subject,
            name="where_to",
        )
    thing = definite(chance, chance.deal(_BELONGINGS))
    if draw < 40:
        thing = who.subject
    elif draw < 60:
        thing = building(chance)
    return build(
        "{thing} 在~is 哪儿#where ？#end",
        f"where#where {be(thing.person)}#is~is~where {{thing}} ?#end",
        thing=thing,
        name="where_to",
    )


def when(chance: Chance) -> Unit:
    """你什么时候会去北京？ / When will you go to Beijing?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 50:
        act = build("去#go {place}", "go#go {place}", place=to_land(chance))
    elif draw < 80:
        act = build("去#go {place}", "go#go {place}", place=to_building(chance))
    else:
        act = milestone(chance, who).form("base")
    if chance.odds(0.5):
        return build(
            "{who} 打算#plan 什么时候#when {act} ？#end",
            f"when#when {do(who.person)}~plan {{who}} plan#plan to~act~plan {{act}} ?#end",
            who=who.subject,
            act=act,
            name="when",
        )
    return build(
        "{who} 什么时候#when 会#will {act} ？#end",
        "when#when will#will {who} {act} ?#end",
        who=who.subject,
        act=act,
        name="when",
    )


def what_time(chance: Chance) -> Unit:
    """你每天几点起床？ / What time do you get up every day?"""
    who = asked(chance)
    if chance.odds(0.6):
        return build(
            "{who} 每天#day 几点#time {act} ？#end",
            f"what#time time#time {do(who.person)}~act {{who}} {{act}} every#day day#day ?#end",
            who=who.subject,
            act=chance.deal(BY_HOUR).forms["base"],
            name="what_time",
        )
    return build(
        "{who} 明天#day 几点#time 会#will {act} ？#end",
        "what#time time#time will#will {who} {act} tomorrow#day ?#end",
        who=who.subject,
        act=chance.deal(BY_HOUR).forms["base"],
        name="what_time",
    )


def how(chance: Chance) -> Unit:
    """你每天怎么去学校？ / How do you go to the school every day?"""
    who = asked(chance)
    if chance.odds(0.5):
        return build(
            "{who} {time} 怎么#how 去#go {place} ？#end",
            f"how#how {do(who.person)}~go {{who}} go#go {{place}} {{time}} ?#end",
            who=who.subject,
            time=chance.pick(HABIT[:2]),
            place=to_commute(chance),
            name="how",
        )
    return build(
        "{who} 打算#plan 怎么#how 去#go {place} ？#end",
        f"how#how {do(who.person)}~plan {{who}} plan#plan to~go~plan go#go {{place}} ?#end",
        who=who.subject,
        place=to_land(chance) if chance.odds(0.6) else to_building(chance),
        name="how",
    )


def why(chance: Chance) -> Unit:
    """你为什么喜欢中国？ / Why do you like China? 你为什么这么高兴？ / Why are you so happy?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 35:
        return build(
            "{who} 为什么#why 这么#so~is {how} ？#end",
            f"why#why {be(who.person)}~is~how {{who}} so#so {{how}} ?#end",
            who=who.subject,
            how=chance.deal(_STRIKING).plain,
            name="why",
        )
    act = state(chance) if draw < 80 else general(chance)
    negated = chance.odds(0.4)
    return build(
        f"{{who}} 为什么#why {'不#no~do' if negated else ''} {{act}} ？#end",
        f"why#why {do(who.person)}~do~act {{who}} {'not#no' if negated else ''} {{act}} ?#end",
        who=who.subject,
        act=act.form("base"),
        name="why",
    )


_STRIKING: tuple[Adjective, ...] = (*MOODS, *TRAITS)


def not_told(chance: Chance) -> Unit:
    """我不知道他在哪儿工作 / I do not know where he works."""
    zh, en = chance.pick(
        (
            ("我#we 不#no~do 知道#know", "I#we do~do~know not#no know#know"),
            ("他们#we 不#no~do 知道#know", "they#we do~do~know not#no know#know"),
            ("我们#we 想#want 知道#know", "we#we want#want to~know~want know#know"),
            ("我#we 想#want 知道#know", "I#we want#want to~know~want know#know"),
        )
    )
    who = asked(chance)
    draw = chance.below(100)
    if draw < 40:
        doing, _ = scene(chance, single=False)
        return build(
            f"{zh} {{who}} 在~where 哪儿#where {{act}}",
            f"{en} where#where {{who}} {{act}}",
            who=who.subject,
            act=doing.now(who.person),
            name="not_told",
        )
    if draw < 60:
        return build(
            f"{zh} {{who}} 什么时候#when 会#will {{act}}",
            f"{en} when#when {{who}} will#will {{act}}",
            who=who.subject,
            act=build("去#go {place}", "go#go {place}", place=to_land(chance))
            if chance.odds(0.7)
            else milestone(chance, who).form("base"),
            name="not_told",
        )
    if draw < 80:
        return build(
            f"{zh} {{who}} 为什么#why {{act}}",
            f"{en} why#why {{who}} {{act}}",
            who=who.subject,
            act=state(chance).now(who.person),
            name="not_told",
        )
    return build(
        f"{zh} {{thing}} 在~is 哪儿#where",
        f"{en} where#where {{thing}} is~is~where",
        thing=owned(chance.pick(PRONOUNS[1:]), chance.deal(_SINGLE_BELONGINGS)),
        name="not_told",
    )


_SINGLE_BELONGINGS = tuple(noun for noun in nouns("carried book pet") if not noun.is_pair)
