"""When, where and with whom: before the verb in Chinese, at the end in English."""

from tools.phrasebook.acts import (
    Act,
    activity,
    habit,
    milestone,
    past_act,
    planned_act,
    scene,
    scene_abroad,
)
from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import going, to_building, to_commute, to_land, went
from tools.phrasebook.lexicon.people import Named
from tools.phrasebook.lexicon.times import (
    FUTURE,
    HABIT,
    LONG_FUTURE,
    LONG_HABIT,
    LONG_PAST,
    OFTEN,
    PAST,
)
from tools.phrasebook.lexicon.verbs import LEISURE
from tools.phrasebook.morphology import agreeing, be
from tools.phrasebook.noun_phrases import other, single, somebody

_HOURS_OF_DAY = {"早上", "下午", "晚上"}

# Days and longer spans, in which one can have been abroad.
TRAVEL_PAST = tuple(time for time in (*PAST, *LONG_PAST) if time.zh[0][-2:] not in _HOURS_OF_DAY)

TRAVEL_FUTURE = tuple(
    time for time in (*FUTURE, *LONG_FUTURE) if time.zh[0][-2:] not in _HOURS_OF_DAY
)


def time_past(chance: Chance) -> Unit:
    """我昨天买了一本书 / I bought a book yesterday."""
    who = somebody(chance)
    time = chance.deal(PAST)
    draw = chance.below(100)
    if draw < 15:
        time, act = chance.deal(TRAVEL_PAST), went(to_land(chance))
    elif draw < 25:
        act = went(to_building(chance))
    elif draw < 32:
        time, act = chance.deal(LONG_PAST), milestone(chance, who).done()
    elif draw < 50:
        doing, where = scene(chance, single=True, abroad=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.done())
    else:
        act = past_act(chance, who).done()
    return build("{who} {time} {act}", "{who} {act} {time}", who=who.subject, time=time, act=act)


def time_future(chance: Chance) -> Unit:
    """我们明天会在公园跑步 / We will run in the park tomorrow."""
    who = somebody(chance)
    time = chance.deal(FUTURE)
    draw = chance.below(100)
    if draw < 15:
        time, act = chance.deal(TRAVEL_FUTURE), going(to_land(chance), "go")
    elif draw < 25:
        act = going(to_building(chance), "go")
    elif draw < 32:
        time, act = chance.deal(LONG_FUTURE), milestone(chance, who).form("base")
    elif draw < 45:
        doing, where = scene(chance, single=True, abroad=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    elif draw < 52:
        time = chance.deal(LONG_FUTURE)
        doing, where = scene_abroad(chance)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    else:
        act = planned_act(chance, who).form("base")
    return build(
        "{who} {time} 会#will {act}",
        "{who} will#will {act} {time}",
        who=who.subject,
        time=time,
        act=act,
    )


def time_habit(chance: Chance) -> Unit:
    """他每天吃苹果 / He eats apples every day."""
    who = somebody(chance)
    time = chance.deal(HABIT)
    draw = chance.below(100)
    if draw < 15:
        time = chance.deal(LONG_HABIT)
        act = going(to_land(chance), agreeing("go", who.person))
    elif draw < 30:
        act = going(to_commute(chance), agreeing("go", who.person))
    elif draw < 55:
        doing, where = scene(chance, single=False, abroad=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.now(who.person))
    else:
        act = habit(chance).now(who.person)
    return build("{who} {time} {act}", "{who} {act} {time}", who=who.subject, time=time, act=act)


def place(chance: Chance) -> Unit:
    """他常常在图书馆看书 / He often reads in the library."""
    who = somebody(chance)
    doing, where = scene(chance, single=False)
    return build(
        "{who} {often} {where} {act}",
        "{who} {often} {act} {where}",
        who=who.subject,
        often=chance.deal(OFTEN),
        where=where,
        act=doing.now(who.person),
    )


def progressive(chance: Chance) -> Unit:
    """她正在写一封信 / She is writing a letter; 她正在厨房做饭 / She is cooking in the kitchen."""
    who = somebody(chance)
    is_ = be(who.person)
    doing, where = scene(chance, single=True)
    if chance.odds(0.5):
        return build(
            "{who} 正~is~act {where} {act}",
            f"{{who}} {is_}~is~act {{act}} {{where}}",
            who=who.subject,
            where=where,
            act=doing.form("ing"),
            name="progressive",
        )
    return build(
        "{who} 正在~is~act {act}",
        f"{{who}} {is_}~is~act {{act}}",
        who=who.subject,
        act=doing.form("ing"),
        name="progressive",
    )


def still(chance: Chance) -> Unit:
    """他还在睡觉 / He is still sleeping."""
    who = somebody(chance)
    return build(
        "{who} 还#still 在~is~act {act}",
        f"{{who}} {be(who.person)}~is~act still#still {{act}}",
        who=who.subject,
        act=activity(chance).form("ing"),
        name="still",
    )


def together(chance: Chance, who: Named) -> Unit:
    """跟她一起 / with her."""
    return build(
        "跟#with {whom} 一起~with",
        "with#with {whom}",
        whom=other(chance, who).object,
        name="companion",
    )


def companion(chance: Chance) -> Unit:
    """我常常跟她一起散步 / I often take a walk with her."""
    who = single(chance)
    act = Act(chance.deal(LEISURE)).now(who.person)
    if chance.odds(0.35):
        return build(
            "{who} {time} {whom} {act}",
            "{who} {act} {whom} {time}",
            who=who.subject,
            time=chance.deal(HABIT),
            whom=together(chance, who),
            act=act,
        )
    return build(
        "{who} {often} {whom} {act}",
        "{who} {often} {act} {whom}",
        who=who.subject,
        often=chance.deal(OFTEN),
        whom=together(chance, who),
        act=act,
    )
