"""How long, how often, how old, how much and how many."""

from regard.text.phrasebook.acts import Act
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions.settings import hour
from regard.text.phrasebook.grammar import Unit, build, word
from regard.text.phrasebook.journeys import land, to_commute, to_land, went
from regard.text.phrasebook.lexicon.nouns import KINDS, nouns
from regard.text.phrasebook.lexicon.numbers import chinese_number, count, english_number
from regard.text.phrasebook.lexicon.people import PRONOUNS
from regard.text.phrasebook.lexicon.places import BUILDINGS, ROOMS
from regard.text.phrasebook.lexicon.selection import select
from regard.text.phrasebook.lexicon.times import HABIT, LONG_HABIT, PAST
from regard.text.phrasebook.lexicon.verbs import (
    ACCIDENTS,
    ACTIVITIES,
    DAILY,
    DEEDS,
    LIKINGS,
    MILESTONES,
    WANTS,
)
from regard.text.phrasebook.morphology import be, have, present
from regard.text.phrasebook.noun_phrases import certain, one, single, somebody, spot, this

# Chinese unit with its measure word, English unit, and the numbers it comes in.
_MINUTES = ("分钟", "minute", (5, 10, 20, 30, 40))
_HOURS = ("个小时", "hour", (1, 2, 3, 4, 5, 6, 8))
_DAYS = ("天", "day", (2, 3, 4, 5, 6))
_WEEKS = ("个星期", "week", (1, 2, 3))
_MONTHS = ("个月", "month", (1, 2, 3, 4, 6, 8))
_YEARS = ("年", "year", (1, 2, 3, 4, 5, 6, 8, 10, 20))
_BRIEF = (_MINUTES, _HOURS)
_LONG = (_DAYS, _WEEKS, _MONTHS, _YEARS)
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
            "{who} {verb} {thing} for~span {span}",
            who=who.subject,
            verb=verb,
            span=span,
            thing=thing,
            name="duration",
        )
    if draw < 55:
        return build(
            "{who} 等#wait 了~wait {whom} {span}",
            "{who} waited#wait for#wait {whom} for~span {span}",
            who=who.subject,
            whom=_pronoun_or_name(chance, who.zh),
            span=_span(chance, _BRIEF),
            name="duration",
        )
    if draw < 75:
        return build(
            "{who} 在#at {place} 住#live 了~live {span}",
            "{who} lived#live in#at {place} for~span {span}",
            who=who.subject,
            place=land(chance),
            span=_span(chance, _LONG),
            name="duration",
        )
    act = chance.deal(_LASTING)
    return build(
        "{who} {time} {act} 了~act {span}",
        "{who} {act} for~span {span} {time}",
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
            f"{{who}} {has}~has~live lived#live in#at {{place}} for~span {{span}}",
            who=who.subject,
            place=land(chance),
            span=span,
            name="so_far",
        )
    return build(
        "{who} 学#learn 了~learn {span} {thing} 了~has",
        f"{{who}} {has}~has~learn studied#learn {{thing}} for~span {{span}}",
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


def age(chance: Chance) -> Unit:
    """我弟弟今年十五岁 / My younger brother is 15 years old this year."""
    who = single(chance)
    number = chance.pick(_AGES)
    years = build(
        f"{chinese_number(number)}#number 岁#old",
        f"{english_number(number)}#number years#old old#old",
    )
    if chance.odds(0.15):
        return build(
            "{who} 今年#year {years}",
            f"{{who}} {be(who.person)}~years {{years}} this#year year#year",
            who=who.subject,
            years=years,
            name="age",
        )
    return build(
        "{who} {years} 了~is",
        f"{{who}} {be(who.person)}~is~years {{years}}",
        who=who.subject,
        years=years,
        name="age",
    )


_AGES = (5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 18, 20, 25, 30, 40, 50, 60)


def price(chance: Chance) -> Unit:
    """这本书五十块钱 / This book costs 50 yuan."""
    number = chance.pick(_PRICES)
    thing = this(chance, chance.deal(_SOLD))
    cost = "costs" if thing.person == "singular" else "cost"
    return build(
        f"{{thing}} {_price_number(number)}#number 块钱#yuan",
        f"{{thing}} {cost}~yuan {english_number(number)}#number yuan#yuan",
        thing=thing,
        name="price",
    )


def _price_number(number: int) -> str:
    return "两百" + chinese_number(number)[2:] if 200 <= number < 300 else chinese_number(number)


_PRICES = (10, 20, 30, 40, 50, 60, 80, 100, 200, 300)
_SOLD = nouns(
    "clothing accessory book tableware flower household 票 雨伞 书包 词典 地图 礼物 鸡 蛋糕 西瓜"
)


def ago(chance: Chance) -> Unit:
    """他三年前去了中国 / He went to China three years ago."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        span, act = _span(chance, _LONG), went(to_land(chance))
    elif draw < 60:
        span, act = _span(chance, _VERY_LONG), Act(chance.deal(MILESTONES)).done()
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
        span, act = _span(chance, _VERY_LONG), Act(chance.deal(MILESTONES)).form("base")
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

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def floor(chance: Chance) -> Unit:
    """图书馆在三楼 / The library is on the third floor."""
    number = chance.below(6) + 1
    place = spot(chance.deal(_INDOORS))
    return build(
        f"{{place}} 在~floor {chinese_number(number)}楼#floor",
        f"{{place}} is~place on#floor the~floor {_ORDINALS[number - 1]}#floor floor#floor",
        place=place,
        name="floor",
    )


_INDOORS = (
    *ROOMS[:4],
    *select(BUILDINGS, "图书馆 书店 饭馆 咖啡馆 办公室 体育馆 实验室 药店 银行 电影院"),
)


def ordinal(chance: Chance) -> Unit:
    """这是他的第二本小说 / This is his second novel."""
    number = chance.below(6) + 1
    owner = chance.deal(PRONOUNS).owner
    assert owner is not None
    noun = chance.deal(_NUMBERED)
    return build(
        f"这#this 是#is {{who}} 的~who 第{chinese_number(number)}#nth {noun.measure}~nth {{noun}}",
        f"this#this is#is {{who}} {_ORDINALS[number - 1]}#nth {{noun}}",
        who=owner,
        noun=noun.one,
        name="ordinal",
    )


_NUMBERED = nouns("book 手机 电脑 汽车 自行车 画 歌 诗 电影 相机 手表 房子 故事 文章 计划 比赛")


def share(chance: Chance) -> Unit:
    """百分之八十的学生喜欢音乐 / 80 percent of the students like music."""
    role = chance.deal(_POLLED).many
    verb = chance.deal(LIKINGS)
    thing = chance.deal(verb.objects).many
    if chance.odds(0.5):
        number = chance.pick((10, 20, 30, 40, 50, 60, 70, 80, 90))
        part = build(
            f"百分之#percent {chinese_number(number)}#number",
            f"{number}#number percent#percent",
        )
    else:
        top, bottom = chance.pick(((1, 3), (2, 3), (1, 4), (3, 4), (1, 5), (2, 5)))
        below = {3: "third", 4: "quarter", 5: "fifth"}[bottom] + ("s" if top > 1 else "")
        part = build(
            f"{chinese_number(bottom)}分之#below {chinese_number(top)}#top",
            f"{english_number(top)}#top {below}#below",
        )
    return build(
        "{part} 的#of {role} {verb} {thing}",
        "{part} of#of the~role {role} {verb} {thing}",
        part=part,
        role=role,
        verb=verb.forms["base"],
        thing=thing,
        name="share",
    )


_POLLED = (
    *select(KINDS["role"], "学生 老师 医生 护士 工人 农民 司机 律师 士兵 运动员 服务员 秘书"),
    *select(KINDS["person"], "孩子 女人 男人 客人"),
)


def more_than(chance: Chance) -> Unit:
    """他有二十多本书 / He has more than 20 books."""
    who = somebody(chance)
    number = chance.pick((20, 30, 40, 50, 60, 100))
    noun = chance.deal(_OWNED_MANY)
    has = have(who.person)
    return build(
        f"{{who}} 有#has {chinese_number(number)}#number 多#more {noun.measure}~number {{noun}}",
        f"{{who}} {has}#has more#more than#more {number}#number {{noun}}",
        who=who.subject,
        noun=noun.many,
        name="more_than",
    )


_OWNED_MANY = nouns("book 邮票 明信片 玩具 画 照片 衬衫 帽子 领带 地图 裙子 盘子 杯子 铅笔 本子")


def every(chance: Chance) -> Unit:
    """每个学生都喜欢音乐 / Every student likes music."""
    role = chance.deal(_FOLK)
    verb = chance.pick(_SHARED)
    noun = chance.deal(verb.objects)
    thing = one(noun) if verb.zh == "需要" else noun.many
    return build(
        f"每#every {role.measure}~every {{role}} 都~every~verb {{verb}} {{thing}}",
        "every#every {role} {verb} {thing}",
        role=role.one,
        verb=verb.forms["third"],
        thing=thing,
        name="every",
    )


_SHARED = (*LIKINGS[:2], *LIKINGS[:2], WANTS[0])
_FOLK = (*KINDS["role"], *KINDS["person"])
