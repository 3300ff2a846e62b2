"""Ways and distances: 从, 坐, 离."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.settings import TRAVEL_FUTURE, TRAVEL_PAST
from tools.phrasebook.grammar import NOTHING, Unit, build
from tools.phrasebook.journeys import building, land, to_commute
from tools.phrasebook.lexicon.places import BUILDINGS, CITIES, COUNTRIES, LANDS, Place
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import FUTURE, HABIT, PAST
from tools.phrasebook.morphology import agreeing
from tools.phrasebook.noun_phrases import somebody, spot, to


def origin(chance: Chance) -> Unit:
    """他昨天从北京回来了 / He came back from Beijing yesterday."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 30:
        return build(
            "{who} 从#from {place} 来#come",
            f"{{who}} {agreeing('come', who.person)}#come from#from {{place}}",
            who=who.subject,
            place=land(chance),
            name="origin",
        )
    abroad = chance.odds(0.6)
    place = land(chance) if abroad else building(chance)
    if draw < 65:
        return build(
            "{who} {time} 从#from {place} 回来#back 了~back",
            "{who} came#back back#back from#from {place} {time}",
            who=who.subject,
            time=chance.pick(TRAVEL_PAST[:4] if abroad else PAST),
            place=place,
            name="origin",
        )
    return build(
        "{who} {time} 会#will 从#from {place} 回来#back",
        "{who} will#will come#back back#back from#from {place} {time}",
        who=who.subject,
        time=chance.deal(TRAVEL_FUTURE if abroad else FUTURE),
        place=place,
        name="origin",
    )


_TOWN_VEHICLES = (
    ("骑自行车", "bicycle"),
    ("坐公共汽车", "bus"),
    ("坐出租车", "taxi"),
    ("坐地铁", "subway"),
    ("开车", "car"),
    ("骑摩托车", "motorcycle"),
)

_BY_RAIL = select(
    LANDS, "北京 上海 广州 成都 南京 香港 巴黎 柏林 罗马 莫斯科 法国 德国 意大利 瑞士"
)

_BY_SEA = select(LANDS, "日本 韩国 香港 上海 悉尼 希腊 埃及 英国 巴西")

_BY_CAR = select(LANDS, "北京 上海 广州 成都 南京 巴黎 柏林 法国 德国 瑞士")

_FAR_VEHICLES: tuple[tuple[str, str, tuple[Place, ...]], ...] = (
    ("坐飞机", "plane", LANDS),
    ("坐火车", "train", _BY_RAIL),
    ("坐船", "boat", _BY_SEA),
    ("开车", "car", _BY_CAR),
)


def _vehicle(zh: str, en: str) -> Unit:
    return build(f"{zh[0]}#by {zh[1:]}#car", f"by#by {en}#car", name="transport")


def voyage(chance: Chance) -> tuple[Unit, Unit]:
    """坐飞机 / by plane, and a land it can go to."""
    zh, en, places = chance.deal(_FAR_VEHICLES)
    return _vehicle(zh, en), to(chance.deal(places))


def ride(chance: Chance) -> Unit:
    """坐公共汽车 / by bus."""
    return _vehicle(*chance.deal(_TOWN_VEHICLES))


def transport(chance: Chance) -> Unit:
    """他每天坐公共汽车去图书馆 / He goes to the library by bus every day."""
    who = somebody(chance)
    if chance.odds(0.5):
        return build(
            "{who} {time} {by} 去#go {place}",
            f"{{who}} {agreeing('go', who.person)}#go {{place}} {{by}} {{time}}",
            who=who.subject,
            time=chance.pick(HABIT[:3]),
            by=ride(chance),
            place=to_commute(chance),
        )
    by, place = voyage(chance)
    if chance.odds(0.5):
        return build(
            "{who} {time} {by} 去#go 了~go {place}",
            "{who} went#go {place} {by} {time}",
            who=who.subject,
            time=chance.deal(TRAVEL_PAST),
            by=by,
            place=place,
        )
    want = agreeing("want", who.person)
    return build(
        "{who} 想#want {by} 去#go {place}",
        f"{{who}} {want}#want to~go~want go#go {{place}} {{by}}",
        who=who.subject,
        by=by,
        place=place,
    )


_ROUTES: tuple[tuple[str, str, tuple[Place, ...]], ...] = (
    ("坐飞机", "plane", CITIES),
    ("坐飞机", "plane", COUNTRIES),
    ("坐火车", "train", _BY_RAIL[:6]),
    ("坐火车", "train", _BY_RAIL[6:]),
    ("开车", "car", select(CITIES, "北京 上海 广州 成都 南京")),
)


def from_to(chance: Chance) -> Unit:
    """他坐火车从北京去了上海 / He went from Beijing to Shanghai by train."""
    who = somebody(chance)
    zh, en, places = chance.deal(_ROUTES)
    first, second = chance.shuffle(places)[:2]
    return build(
        "{who} {time} {by} 从#from {first} 去#went 了~went {second}",
        "{who} went#went from#from {first} {second} {by} {time}",
        who=who.subject,
        time=chance.deal(TRAVEL_PAST),
        by=_vehicle(zh, en) if chance.odds(0.5) else NOTHING,
        first=spot(first),
        second=to(second),
        name="from_to",
    )


def distance(chance: Chance) -> Unit:
    """学校离医院很远 / The school is very far from the hospital."""
    first, second = (spot(place) for place in chance.shuffle(BUILDINGS)[:2])
    very_zh, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
    far_zh, far_en, to_ = chance.pick((("远", "far", "from"), ("近", "close", "to")))
    return build(
        f"{{first}} 离#from {{second}} {very_zh}#very {far_zh}#far",
        f"{{first}} is~far {very_en}#very {far_en}#far {to_}#from {{second}}",
        first=first,
        second=second,
        name="distance",
    )
