"""Hours, weekdays, dates, seasons and the weather."""

from tools.phrasebook.acts import (
    Act,
    appointment,
    habit,
    milestone,
    past_act,
    planned_act,
)
from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import going, to_land, went
from tools.phrasebook.lexicon.numbers import chinese_number, english_number
from tools.phrasebook.lexicon.people import Named
from tools.phrasebook.lexicon.places import CITIES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import (
    FUTURE,
    HABIT,
    LONG_PAST,
    MONTHS,
    OFTEN,
    PAST,
    SEASONS,
    WEEKDAYS,
)
from tools.phrasebook.lexicon.verbs import DAILY, GO_TO_BED, LEISURE, Verb
from tools.phrasebook.morphology import agreeing, present
from tools.phrasebook.noun_phrases import (
    single,
    somebody,
    spot,
)


def weather(chance: Chance) -> Unit:
    """北京昨天下雪了 / It snowed in Beijing yesterday; 今天很冷 / It is very cold today."""
    draw = chance.below(100)
    place = spot(chance.deal(CITIES))
    if draw < 45:
        fell, zh = chance.pick((("rained", "下雨"), ("snowed", "下雪")))
        place = spot(chance.deal(_COLD_CITIES)) if fell == "snowed" else place
        return build(
            f"{{place}} {{time}} {zh}#fall 了~fall",
            f"it~fall {fell}#fall in~place {{place}} {{time}}",
            place=place,
            time=chance.deal(_DAYS_PAST),
            name="weather",
        )
    if draw < 75:
        fall, zh = chance.pick((("rain", "下雨"), ("snow", "下雪")))
        place = spot(chance.deal(_COLD_CITIES)) if fall == "snow" else place
        return build(
            f"{{place}} {{time}} 会#will {zh}#fall",
            f"it~fall will#will {fall}#fall in~place {{place}} {{time}}",
            place=place,
            time=chance.deal(_DAYS_FUTURE),
            name="weather",
        )
    how, how_en = chance.pick(_FELT)
    very, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
    return build(
        f"{{place}} 今天#day {very}#very {how}#how",
        f"it~how is~how {very_en}#very {how_en}#how in~place {{place}} today#day",
        place=place,
        name="weather",
    )


_COLD_CITIES = select(CITIES, "北京 上海 南京 巴黎 伦敦 纽约 东京 柏林 莫斯科 波士顿")

_FELT = (("冷", "cold"), ("热", "hot"), ("暖和", "warm"), ("凉快", "cool"))

_DAYS_PAST = (*PAST, LONG_PAST[0])

_DAYS_FUTURE = FUTURE

# The hours that suit what a day is made of, the part of the day with its English, and the act.
HOURS: dict[str, tuple[tuple[int, ...], tuple[str, str]]] = {
    "起床": ((5, 6, 7, 8, 9), ("早上", "morning")),
    "吃早饭": ((6, 7, 8, 9), ("早上", "morning")),
    "出门": ((7, 8, 9, 10), ("早上", "morning")),
    "上班": ((7, 8, 9, 10), ("早上", "morning")),
    "吃午饭": ((12, 1, 2), ("中午", "")),
    "下班": ((3, 4, 5, 6), ("下午", "afternoon")),
    "回家": ((3, 4, 5, 6), ("下午", "afternoon")),
    "吃晚饭": ((5, 6, 7, 8), ("晚上", "evening")),
    "睡觉": ((9, 10, 11), ("晚上", "night")),
}

BY_HOUR = (*DAILY, GO_TO_BED)


def hour(number: int) -> Unit:
    """七点 / seven o'clock."""
    zh = "两" if number == 2 else chinese_number(number)
    return build(f"{zh}#hour 点#clock", f"{english_number(number)}#hour o'clock#clock")


def part_of_hour(chance: Chance, number: int) -> Unit:
    """七点半 / half past seven; 七点一刻 / a quarter past seven; 七点 / seven o'clock."""
    zh = "两" if number == 2 else chinese_number(number)
    en = english_number(number)
    draw = chance.below(4)
    if draw < 2:
        return hour(number)
    if draw == 2:
        return build(f"{zh}#hour 点~past 半#half", f"half#half past~past~half {en}#hour")
    return build(
        f"{zh}#hour 点~past 一刻#quarter",
        f"a~quarter quarter#quarter past~past~quarter {en}#hour",
    )


def hourly(chance: Chance) -> tuple[Verb, Unit]:
    """A daily act and an hour for it: 起床, 早上七点 / at seven o'clock in the morning."""
    verb = chance.deal(BY_HOUR)
    hours, (zh, en) = HOURS[verb.zh]
    time = part_of_hour(chance, chance.pick(hours))
    if not en or chance.odds(0.5):
        return verb, build("{time}", "at~time {time}", time=time, name="clock")
    english = f"at~time {{time}} in~part the~part {en}#part"
    if en == "night":
        english = "at~time {time} at~part night#part"
    return verb, build(f"{zh}#part {{time}}", english, time=time, name="clock")


def clock(chance: Chance) -> Unit:
    """他每天早上七点起床 / He gets up at seven o'clock in the morning every day."""
    who = somebody(chance)
    verb, time = hourly(chance)
    if chance.odds(0.5):
        day = chance.pick(FUTURE[:2])
        return build(
            "{who} {day} {time} 会#will {act}",
            "{who} will#will {act} {time} {day}",
            who=who.subject,
            day=day,
            time=time,
            act=verb.forms["base"],
        )
    return build(
        "{who} {day} {time} {act}",
        "{who} {act} {time} {day}",
        who=who.subject,
        day=HABIT[0],
        time=time,
        act=verb.forms[present(who.person)],
    )


def until(chance: Chance) -> Unit:
    """他昨天十点才起床 / He did not get up until ten o'clock yesterday."""
    who = somebody(chance)
    verb = chance.deal(BY_HOUR)
    time = part_of_hour(chance, chance.pick(HOURS[verb.zh][0]))
    return build(
        "{who} {day} {time} 才#until {act}",
        "{who} did~act~until not~until {act} until#until {time} {day}",
        who=who.subject,
        day=chance.pick(PAST[:2]),
        time=time,
        act=verb.forms["base"],
        name="until",
    )


_WEEKS = (("上个", "last"), ("下个", "next"), ("每个", "every"), ("这个", "this"))


def weekday(chance: Chance) -> Unit:
    """他下个星期五会去北京 / He will go to Beijing next Friday."""
    who = somebody(chance)
    zh, en = chance.pick(_WEEKS)
    day = build(f"{zh}#week {{day}}", f"{en}#week {{day}}", day=chance.deal(WEEKDAYS))
    if en == "every":
        act = habit(chance).now(who.person)
        return _dated(who, day, act, "", "", "weekday")
    if en == "last":
        act = past_act(chance, who).done() if chance.odds(0.7) else went(to_land(chance))
        return _dated(who, day, act, "", "", "weekday")
    act = (
        planned_act(chance, who).form("base") if chance.odds(0.7) else going(to_land(chance), "go")
    )
    return _dated(who, day, act, "会#will", "will#will", "weekday")


def _dated(who: Named, day: Unit, act: Unit, zh: str, en: str, name: str) -> Unit:
    return build(
        f"{{who}} {{day}} {zh} {{act}}",
        f"{{who}} {en} {{act}} {{day}}",
        who=who.subject,
        day=day,
        act=act,
        name=name,
    )


_DAYS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 24, 25, 28)


def calendar_day(chance: Chance) -> Unit:
    """三月五号 / March 5."""
    number = chance.pick(_DAYS)
    return build(
        f"{{month}} {chinese_number(number)}号#day",
        f"{{month}} {number}#day",
        month=chance.deal(MONTHS),
    )


def date(chance: Chance) -> Unit:
    """他三月五号会去北京 / He will go to Beijing on March 5."""
    who = somebody(chance)
    day = build("{day}!", "on~day {day}!", day=calendar_day(chance))
    draw = chance.below(100)
    if draw < 40:
        return _dated(who, day, going(to_land(chance), "go"), "会#will", "will#will", "date")
    if draw < 60:
        act = milestone(chance, who).form("base")
        return _dated(who, day, act, "会#will", "will#will", "date")
    act = appointment(chance).form("base")
    return _dated(who, day, act, "会#will", "will#will", "date")


def birthday(chance: Chance) -> Unit:
    """我的生日是三月五号 / My birthday is March 5."""
    who = single(chance)
    owner = who.owner or who.subject
    mark = "的~who" if who.owner else "的#of"
    return build(
        f"{{who}} {mark} 生日#birth 是#is {{day}}",
        f"{{who}} {'' if who.owner else chr(39) + 's#of'} birthday#birth is#is {{day}}",
        who=owner,
        day=calendar_day(chance),
        name="birthday",
    )


def season(chance: Chance) -> Unit:
    """我们冬天常常滑雪 / We often ski in winter."""
    who = somebody(chance)
    when = build("{season}!", "in~season {season}!", season=chance.deal(SEASONS), name="season")
    draw = chance.below(100)
    if draw < 40:
        act = going(to_land(chance), agreeing("go", who.person))
    else:
        act = Act(chance.deal(_OUTDOORS)).now(who.person)
    return build(
        "{who} {when} {often} {act}",
        "{who} {often} {act} {when}",
        who=who.subject,
        when=when,
        often=chance.deal(_SEASONAL),
        act=act,
    )


_SEASONAL = tuple(often for often in OFTEN if often.zh[0] != "平时")

_OUTDOORS = select(LEISURE, "游泳 跑步 散步 爬山 钓鱼 骑马 骑自行车 旅行 踢足球")
