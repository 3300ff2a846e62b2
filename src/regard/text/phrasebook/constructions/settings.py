"""When, where and with whom: before the verb in Chinese, at the end in English."""

from regard.text.phrasebook.acts import Act, activity, habit, new_act, scene, turn
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import NOTHING, Person, Unit, build
from regard.text.phrasebook.lexicon.numbers import chinese_number, english_number
from regard.text.phrasebook.lexicon.people import Named
from regard.text.phrasebook.lexicon.places import BUILDINGS, CITIES, COUNTRIES
from regard.text.phrasebook.lexicon.times import FUTURE, HABIT, MONTHS, OFTEN, PAST, WEEKDAYS
from regard.text.phrasebook.lexicon.verbs import Verb
from regard.text.phrasebook.morphology import Form, be, inflect, present
from regard.text.phrasebook.noun_phrases import other, somebody, spot


def companion(chance: Chance, who: Named) -> Unit:
    """跟朋友 / with a friend, as an adjunct."""
    return build("跟#with {whom}", "with#with {whom}", whom=other(chance, who).object,
                 name="companion")


def travel(chance: Chance) -> Unit:
    """去北京 / go to Beijing: the place gone to."""
    return spot(chance.pick((*BUILDINGS, *CITIES, *COUNTRIES)))


def _placed(chance: Chance, *, single: bool) -> tuple[Act, Unit]:
    act, where = scene(chance, single=single)
    return act, build("{where}", "{where}", where=where, name="place")


def time_past(chance: Chance) -> Unit:
    """我昨天买了一本书 / I bought a book yesterday."""
    who = somebody(chance)
    time = chance.pick(PAST)
    draw = chance.pick(range(100))
    if draw < 25:
        act = build("去#go 了~go {place}", "went#go to~go~place {place}", place=travel(chance))
        return build("{who} {time} {act}", "{who} {act} {time}", who=who.subject, time=time, act=act)
    if draw < 45:
        doing, where = _placed(chance, single=True)
        return build("{who} {time} {where} {act}", "{who} {act} {where} {time}",
                     who=who.subject, time=time, where=where, act=doing.done())
    return build("{who} {time} {act}", "{who} {act} {time}", who=who.subject, time=time,
                 act=new_act(chance, who).done())


def time_future(chance: Chance) -> Unit:
    """我们明天会在公园跑步 / We will run in the park tomorrow."""
    who = somebody(chance)
    time = chance.pick(FUTURE)
    draw = chance.pick(range(100))
    if draw < 30:
        return build("{who} {time} 会#will 去#go {place}",
                     "{who} will#will go#go to~go~place {place} {time}",
                     who=who.subject, time=time, place=travel(chance))
    if draw < 50:
        doing, where = _placed(chance, single=True)
        return build("{who} {time} 会#will {where} {act}", "{who} will#will {act} {where} {time}",
                     who=who.subject, time=time, where=where, act=doing.form("base"))
    return build("{who} {time} 会#will {act}", "{who} will#will {act} {time}",
                 who=who.subject, time=time, act=new_act(chance, who).form("base"))


def time_habit(chance: Chance) -> Unit:
    """他每天吃苹果 / He eats apples every day."""
    who = somebody(chance)
    time = chance.pick(HABIT)
    if chance.odds(0.4):
        doing, where = _placed(chance, single=False)
        return build("{who} {time} {where} {act}", "{who} {act} {where} {time}", who=who.subject,
                     time=time, where=where, act=doing.now(who.person))
    return build("{who} {time} {act}", "{who} {act} {time}", who=who.subject, time=time,
                 act=habit(chance).now(who.person))


def place(chance: Chance) -> Unit:
    """他常常在图书馆看书 / He often reads in the library."""
    who = somebody(chance)
    doing, where = _placed(chance, single=False)
    return build("{who} {often} {where} {act}", "{who} {often} {act} {where}", who=who.subject,
                 often=chance.pick(OFTEN), where=where, act=doing.now(who.person))


def progressive(chance: Chance) -> Unit:
    """她正在写一封信 / She is writing a letter; 她正在厨房做饭 / She is cooking in the kitchen."""
    who = somebody(chance)
    is_ = be(who.person)
    doing, where = scene(chance, single=True)
    if chance.odds(0.5):
        return build("{who} 正~is~act {where} {act}", f"{{who}} {is_}~is~act {{act}} {{where}}",
                     who=who.subject, where=where, act=doing.form("ing"), name="progressive")
    return build("{who} 正在~is~act {act}", f"{{who}} {is_}~is~act {{act}}", who=who.subject,
                 act=doing.form("ing"), name="progressive")


def accompanied(chance: Chance) -> Unit:
    """我常常跟她散步 / I often take a walk with her."""
    who = somebody(chance)
    act = activity(chance)
    if chance.odds(0.5):
        return build("{who} {time} {whom} 一起~whom {act}", "{who} {act} {whom} {time}",
                     who=who.subject, time=chance.pick(HABIT), whom=companion(chance, who),
                     act=act.now(who.person))
    return build("{who} {often} {whom} 一起~whom {act}", "{who} {often} {act} {whom}",
                 who=who.subject, often=chance.pick(OFTEN), whom=companion(chance, who),
                 act=act.now(who.person))


def clock(chance: Chance) -> Unit:
    """七点半 / half past seven; 早上七点 / seven o'clock in the morning, as a time to do things."""
    hour = chance.pick(range(1, 13))
    zh = "两" if hour == 2 else chinese_number(hour)
    en = english_number(hour)
    draw = chance.pick(range(3))
    if draw == 0:
        return build(f"{zh}#hour 点#clock", f"at~hour {en}#hour o'clock#clock", name="clock")
    if draw == 1:
        return build(f"{zh}#hour 点~past 半#half", f"at~hour half#half past~past {en}#hour",
                     name="clock")
    return build(f"{zh}#hour 点~past 一刻#quarter",
                 f"at~hour a~quarter quarter#quarter past~past {en}#hour", name="clock")


def at_an_hour(chance: Chance) -> Unit:
    """他每天七点起床 / He gets up at seven o'clock every day."""
    who = somebody(chance)
    time = chance.pick(HABIT[:1])
    return build("{who} {time} {hour} {act}", "{who} {act} {hour} {time}", who=who.subject,
                 time=time, hour=clock(chance), act=turn(chance).now(who.person))
