"""How long, how often, how long ago and how soon."""

from tools.phrasebook.acts import Act, milestone
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.calendar import hour
from tools.phrasebook.grammar import Unit, build, word
from tools.phrasebook.journeys import land, to_commute, to_land, went
from tools.phrasebook.lexicon.nouns import KINDS
from tools.phrasebook.lexicon.numbers import count
from tools.phrasebook.lexicon.people import PRONOUNS
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import HABIT, LONG_HABIT, PAST
from tools.phrasebook.lexicon.verbs import (
    ACCIDENTS,
    ACTIVITIES,
    DAILY,
    DEEDS,
)
from tools.phrasebook.morphology import have, present
from tools.phrasebook.noun_phrases import certain, somebody

# Chinese unit with its measure word, English unit, and the numbers it comes in.
_MINUTES = ("分钟", "minute", (5, 10, 20, 30, 40))

_HOURS = ("个小时", "hour", (1, 2, 3, 4, 5, 6, 8))

_DAYS = ("天", "day", (2, 3, 4, 5, 6))

_WEEKS = ("个星期", "week", (1, 2, 3))

_MONTHS = ("个月", "month", (1, 2, 3, 4, 6, 8))

_YEARS = ("年", "year", (1, 2, 3, 4, 5, 6, 8, 10, 20))

_BRIEF = (_MINUTES, _HOURS)

_LONG = (_DAYS, _WEEKS, _MONTHS, _YEARS)

_FORESEEN = (_MONTHS, ("年", "year", (1, 2, 3, 4, 5)))
_VERY_LONG = (_MONTHS, _YEARS)


def _span(chance: Chance, units: tuple[tuple[str, str, tuple[int, ...]], ...]) -> Unit:
    """三年 / three years; 半个小时 / half an hour."""
    zh, en, numbers = chance.pick(units)
    if zh == "个小时" and chance.odds(0.2):
        return build("半#half 个小时#hour!", "half#half a~half~hour hour#hour!")
    number = chance.pick(numbers)
    if number == 1:
        return build(f"一~unit {zh}#unit!", f"a~unit {en}#unit!")
    en += "s"
    return build(f"{{number}} {zh}#unit!", f"{{number}} {en}#unit!", number=count(number))


def duration(chance: Chance) -> Unit:
    """我学了三年中文 / I studied Chinese for three years."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        span = _span(chance, _VERY_LONG)
        verb = word("学", "studied")
        thing = chance.deal(KINDS["language"]).one
        return build(
            "{who} {verb} 了~verb {span} {thing}",
            "{who} {verb} {thing} for~span~verb {span}",
            who=who.subject,
            verb=verb,
            span=span,
            thing=thing,
            name="duration",
        )
    if draw < 55:
        return build(
            "{who} 等#wait 了~wait {whom} {span}",
            "{who} waited#wait for#wait {whom} for~span~wait {span}",
            who=who.subject,
            whom=_pronoun_or_name(chance, who.zh),
            span=_span(chance, _BRIEF),
            name="duration",
        )
    if draw < 75:
        return build(
            "{who} 在#at {place} 住#live 了~live {span}",
            "{who} lived#live in#at {place} for~span~live {span}",
            who=who.subject,
            place=land(chance),
            span=_span(chance, _LONG),
            name="duration",
        )
    act = chance.deal(_LASTING)
    return build(
        "{who} {time} {act} 了~act {span}",
        "{who} {act} for~span~act {span} {time}",
        who=who.subject,
        time=chance.deal(_DAY_PAST),
        act=act.forms["past"],
        span=_span(chance, _BRIEF),
        name="duration",
    )


_LASTING = select(ACTIVITIES, "工作 休息 学习 锻炼")

_DAY_PAST = tuple(unit for unit in PAST if unit.zh[0] in {"昨天", "前天", "今天早上", "昨天下午"})


def _pronoun_or_name(chance: Chance, first: str) -> Unit:
    while True:
        named = chance.deal(PRONOUNS)
        if named.zh[0] != first[0]:
            return named.object


def so_far(chance: Chance) -> Unit:
    """他在北京住了三年了 / He has lived in Beijing for three years."""
    who = somebody(chance)
    has = have(who.person)
    span = _span(chance, _VERY_LONG)
    if chance.odds(0.6):
        return build(
            "{who} 在#at {place} 住#live 了~live {span} 了~has",
            f"{{who}} {has}~has~live lived#live in#at {{place}} for~span~live {{span}}",
            who=who.subject,
            place=land(chance),
            span=span,
            name="so_far",
        )
    return build(
        "{who} 学#learn 了~learn {span} {thing} 了~has",
        f"{{who}} {has}~has~learn studied#learn {{thing}} for~span~learn {{span}}",
        who=who.subject,
        span=span,
        thing=chance.deal(KINDS["language"]).one,
        name="so_far",
    )


def _times(number: int) -> Unit:
    """三次 / three times; 一次 / once."""
    if number <= 2:
        return word("一次" if number == 1 else "两次", "once" if number == 1 else "twice")
    return build("{number} 次#times", "{number} times#times", number=count(number))


def frequency(chance: Chance) -> Unit:
    """我去过三次北京 / I have been to Beijing three times."""
    who = somebody(chance)
    times = _times(chance.pick((1, 2, 3, 4, 5, 6)))
    if chance.odds(0.5):
        return build(
            "{who} 去#go 过~has {times} {place}",
            f"{{who}} {have(who.person)}~has~go been#go {{place}} {{times}}",
            who=who.subject,
            times=times,
            place=to_land(chance),
            name="frequency",
        )
    go = "goes" if who.person == "singular" else "go"
    return build(
        "{who} {time} 去#go {times} {place}",
        f"{{who}} {go}#go {{place}} {{times}} {{time}}",
        who=who.subject,
        time=chance.deal(_REGULAR),
        times=times,
        place=to_commute(chance),
        name="frequency",
    )


_REGULAR = (HABIT[1], *LONG_HABIT)


def ago(chance: Chance) -> Unit:
    """他三年前去了中国 / He went to China three years ago."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        span, act = _span(chance, _LONG), went(to_land(chance))
    elif draw < 60:
        span, act = _span(chance, _VERY_LONG), milestone(chance, who).done()
    else:
        span, act = _span(chance, (_DAYS, _WEEKS, _MONTHS)), _recorded(chance).done()
    return build(
        "{who} {span} 前#ago {act}",
        "{who} {act} {span} ago#ago",
        who=who.subject,
        span=span,
        act=act,
        name="ago",
    )


def _recorded(chance: Chance) -> Act:
    """What one remembers the day of: 丢了护照."""
    verb = chance.deal(_MEMORABLE)
    return Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))


_MEMORABLE = (*select(DEEDS, "借 寄 买 写 修 参加"), *select(ACCIDENTS, "丢 收到"))


def later(chance: Chance) -> Unit:
    """他三天以后会回家 / He will go home in three days."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 40:
        span = _span(chance, _LONG)
        act = build("去#go {place}", "go#go {place}", place=to_land(chance))
    elif draw < 65:
        span, act = _span(chance, _FORESEEN), milestone(chance, who).form("base")
    else:
        span, act = _span(chance, _BRIEF), Act(chance.deal(_LEAVING)).form("base")
    return build(
        "{who} {span} 以后#in 会#will {act}",
        "{who} will#will {act} in#in {span}",
        who=who.subject,
        span=span,
        act=act,
        name="later",
    )


_LEAVING = select(DAILY, "回家 下班 出门 吃晚饭 吃午饭")


def from_hour_to_hour(chance: Chance) -> Unit:
    """他每天从九点到五点工作 / He works from nine o'clock to five o'clock every day."""
    who = somebody(chance)
    start, end = chance.pick(_SHIFTS)
    verb = chance.deal(_WORKING)
    return build(
        "{who} {time} 从#from {start} 到#to {end} {act}",
        "{who} {act} from#from {start} to#to {end} {time}",
        who=who.subject,
        time=HABIT[0],
        start=hour(start),
        end=hour(end),
        act=verb.forms[present(who.person)],
        name="from_hour_to_hour",
    )


_SHIFTS = ((8, 12), (9, 12), (8, 4), (8, 5), (9, 5), (9, 6), (10, 6), (1, 5), (2, 6), (7, 3))

_WORKING = select(ACTIVITIES, "工作 学习 上课")
