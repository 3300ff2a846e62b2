"""What is where, what came first to mind, and who else: 有, 在, topics, 是…的, 也, 都, 只, 连."""

from regard.text.phrasebook.acts import pastime
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions.particles import inside, placing
from regard.text.phrasebook.constructions.prepositions import ride, voyage
from regard.text.phrasebook.constructions.settings import TRAVEL_PAST
from regard.text.phrasebook.constructions.statements import state
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.journeys import land, to_building, to_land
from regard.text.phrasebook.lexicon.nouns import KINDS, NOUNS, nouns
from regard.text.phrasebook.lexicon.numbers import year
from regard.text.phrasebook.lexicon.people import NAMES, PRONOUNS
from regard.text.phrasebook.lexicon.places import BUILDINGS, CITIES
from regard.text.phrasebook.lexicon.selection import select
from regard.text.phrasebook.lexicon.times import FUTURE, LONG_PAST, PAST
from regard.text.phrasebook.lexicon.verbs import ACTIONS, MILESTONES
from regard.text.phrasebook.morphology import be, do, have
from regard.text.phrasebook.noun_phrases import (
    RELATIVES,
    definite,
    numbered,
    one,
    single,
    somebody,
    spot,
    the,
    this,
)


def there_is(chance: Chance) -> Unit:
    """桌子上有一本书 / There is a book on the table."""
    noun, where = placing(chance)
    draw = chance.below(100)
    if draw < 45:
        thing = one(noun)
    elif draw < 75:
        thing = numbered(chance, noun)
    else:
        thing = build("很多#many {noun}!", "many#many {noun}!", noun=noun.many, person="plural")
        if not noun.is_counted:
            thing = build("很多#lot {noun}!", "a~lot lot#lot of~lot {noun}!", noun=noun.one)
    is_ = be(thing.person)
    return build(
        "{where} 有#is {thing}",
        f"there~is {is_}#is {{thing}} {{where}}",
        where=where,
        thing=thing,
        name="there_is",
    )


_BESIDE = (
    ("旁边", "next to"),
    ("后面", "behind"),
    ("前面", "in front of"),
    ("对面", "across from"),
    ("附近", "near"),
)
# The measure words of places one may find somewhere.
_SITES: tuple[tuple[str, str], ...] = (
    ("家", "超市 商店 书店 饭馆 咖啡馆 银行 宾馆 药店 医院 电影院 工厂 公司"),
    ("个", "公园 图书馆 邮局 市场 体育馆 游泳池 火车站 机场 动物园 广场 博物馆"),
    ("座", "教堂"),
    ("所", "学校"),
)
_SITE_LIST = tuple(
    (measure, place)
    for measure, names in _SITES
    for place in BUILDINGS
    if place.zh in names.split()
)
_OUTDOORS = nouns("树 河 桥 湖 山")


def _beside(chance: Chance) -> tuple[str, str]:
    zh, en = chance.deal(_BESIDE)
    return f"{zh}#by", en.replace(" ", "#by ") + "#by"


def there_is_beside(chance: Chance) -> Unit:
    """学校旁边有一家银行 / There is a bank next to the school."""
    place = spot(chance.deal(BUILDINGS))
    zh, en = _beside(chance)
    if chance.odds(0.7):
        measure, other_place = chance.deal(_SITE_LIST)
        thing = other_place.bare
    else:
        noun = chance.deal(_OUTDOORS)
        measure, thing = noun.measure, noun.one
    return build(
        f"{{place}} {zh} 有#is 一~a {measure}~a {{thing}}",
        f"there~is is#is a~a~thing {{thing}} {en} {{place}}",
        place=place,
        thing=thing,
        name="there_is_beside",
    )


def is_beside(chance: Chance) -> Unit:
    """银行在学校旁边 / The bank is next to the school."""
    first, second = (spot(place) for place in chance.shuffle(BUILDINGS)[:2])
    zh, en = _beside(chance)
    subject = somebody(chance).subject if chance.odds(0.3) else first
    return build(
        f"{{first}} 在~is~by {{second}} {zh}",
        f"{{first}} {be(subject.person)}~is~by {en} {{second}}",
        first=subject,
        second=second,
        name="is_beside",
    )


def is_at(chance: Chance) -> Unit:
    """你的书在桌子上 / Your book is on the table."""
    noun, where = placing(chance)
    thing = definite(chance, noun)
    if not noun.is_counted or chance.odds(0.3):
        thing = the(noun)
    return build(
        "{thing} 在~is~where {where}",
        f"{{thing}} {be(thing.person)}~is~where {{where}}",
        thing=thing,
        where=where,
        name="is_at",
    )


_POSTURES: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("挂", "hanging", "上", "on", "墙", "画 照片 地图 钟 镜子"),
    ("坐", "sitting", "上", "on", "沙发 椅子", "pet 孩子 女孩 男孩 女人 男人"),
    ("躺", "lying", "上", "on", "床 沙发", "pet 孩子 女孩 男孩 女人 男人"),
    ("站", "standing", "上", "on", "桥 山", "person farm 女孩"),
    ("停", "parked", "上", "on", "路 桥", "car ridden"),
)
_POSED = tuple(
    (zh, en, side, side_en, place, thing)
    for zh, en, side, side_en, places, things in _POSTURES
    for place in nouns(places)
    for thing in dict.fromkeys(nouns(things))
)


def posture(chance: Chance) -> Unit:
    """墙上挂着一幅画 / A painting is hanging on the wall."""
    zh, en, side, side_en, place, noun = chance.deal(_POSED)
    where = inside(place, side, side_en)
    thing = one(noun) if chance.odds(0.6) else numbered(chance, noun)
    return build(
        f"{{where}} {zh}#verb 着~verb~is {{thing}}",
        f"{{thing}} {be(thing.person)}~is~verb {en}#verb {{where}}",
        where=where,
        thing=thing,
        name="posture",
    )


_TOPICS = tuple(
    (verb, noun)
    for verb in ACTIONS
    if verb.zh in {"看", "听", "翻译", "修"}
    for noun in verb.objects
    if noun.is_counted
)


def topic(chance: Chance) -> Unit:
    """这本书我看过 / I have read this book."""
    verb, noun = chance.deal(_TOPICS)
    thing = this(chance, noun)
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 40:
        return build(
            "{thing} {who} {verb} 过~has~verb",
            f"{{who}} {have(who.person)}~has~verb {{verb}} {{thing}}",
            thing=thing,
            who=who.subject,
            verb=verb.forms["participle"],
            name="topic",
        )
    if draw < 70:
        return build(
            "{thing} {who} 已经#already {verb} 了~has~verb",
            f"{{who}} {have(who.person)}~has~verb already#already {{verb}} {{thing}}",
            thing=thing,
            who=who.subject,
            verb=verb.forms["participle"],
            name="topic",
        )
    return build(
        "{thing} {who} 不#not~do 喜欢#like",
        f"{{who}} {do(who.person)}~do~like not#not like#like {{thing}}",
        thing=thing,
        who=who.subject,
        name="topic",
    )


def focus_time(chance: Chance) -> Unit:
    """他是昨天来的 / It was yesterday that he came."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        time = chance.deal(PAST)
        act = build(*chance.pick(_COMING))
    elif draw < 65:
        time = chance.deal(LONG_PAST if chance.odds(0.6) else PAST[2:3])
        act = chance.deal(MILESTONES).forms["past"]
    else:
        time = chance.deal(TRAVEL_PAST)
        act = build("去#go {place}", "went#go {place}", place=to_land(chance))
    return build(
        "{who} 是#was {time} {act} 的~that~was",
        "it was#was {time} that~that {who} {act}",
        who=who.subject,
        time=time,
        act=act,
        name="focus_time",
    )


_COMING = (
    ("来#come", "came#come"),
    ("回来#come", "came#come back#come"),
    ("到#come", "arrived#come"),
    ("回家#come", "went#come home#come"),
    ("走#come", "left#come"),
)
_YEARS = (
    1980,
    1985,
    1988,
    1990,
    1992,
    1995,
    1996,
    1998,
    1999,
    2000,
    2001,
    2002,
    2004,
    2005,
    2008,
    2010,
)


def focus_year(chance: Chance) -> Unit:
    """她是一九九五年出生的 / She was born in 1995."""
    who = single(chance)
    when = year(chance.pick(_YEARS))
    if chance.odds(0.5):
        return build(
            "{who} 是~born {when} 出生#born 的~born",
            "{who} was~born born#born in~when {when}",
            who=who.subject,
            when=when,
            name="focus_year",
        )
    return build(
        "{who} 是~act {when} {act} 的~act",
        "{who} {act} in~when {when}",
        who=who.subject,
        when=when,
        act=chance.deal(MILESTONES).forms["past"],
        name="focus_year",
    )


def focus_place(chance: Chance) -> Unit:
    """他是在北京出生的 / He was born in Beijing."""
    who = single(chance)
    draw = chance.below(100)
    if draw < 35:
        return build(
            "{who} 是~born 在#in {place} 出生#born 的~born",
            "{who} was~born born#born in#in {place}",
            who=who.subject,
            place=land(chance),
            name="focus_place",
        )
    if draw < 65:
        return build(
            "{who} 是~grew 在#in {place} 长大#grew 的~grew",
            "{who} grew#grew up#grew in#in {place}",
            who=who.subject,
            place=land(chance),
            name="focus_place",
        )
    return build(
        "{who} 是~met 在#in {place} 认识#met {whom} 的~met",
        "{who} met#met {whom} in#in {place}",
        who=who.subject,
        whom=_met(chance, who.zh),
        place=land(chance),
        name="focus_place",
    )


def _met(chance: Chance, first: str) -> Unit:
    """Somebody one can get to know: a name, or 他朋友 / his friend."""
    while True:
        named = chance.deal(_ACQUAINTANCES)
        if named.zh != first:
            return named.object


_ACQUAINTANCES = (
    *NAMES,
    *PRONOUNS[2:4],
    *(named for named in RELATIVES if named.zh.endswith(("朋友", "同学", "同事", "邻居"))),
)


def focus_manner(chance: Chance) -> Unit:
    """他是坐火车来的 / He came by train."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 35:
        by, act = ride(chance), build(*chance.pick(_COMING[:4]))
    elif draw < 60:
        by = ride(chance)
        act = build("去#go {place}", "went#go {place}", place=to_building(chance))
    else:
        by, place = voyage(chance)
        act = build("去#go {place}", "went#go {place}", place=place)
    return build(
        "{who} 是~act {by} {act} 的~act",
        "{who} {act} {by}",
        who=who.subject,
        by=by,
        act=act,
        name="focus_manner",
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
    """我们都喜欢音乐 / We all like music."""
    who = chance.deal(_SEVERAL)
    draw = chance.below(100)
    act = state(chance) if draw < 60 else pastime(chance)
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
        doing = state(chance) if draw < 75 else pastime(chance)
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
