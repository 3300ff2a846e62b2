"""What is where: 有, 在, and verbs of posture with 着."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.particles import inside, placing
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.nouns import nouns
from tools.phrasebook.lexicon.places import BUILDINGS
from tools.phrasebook.morphology import be
from tools.phrasebook.noun_phrases import (
    definite,
    numbered,
    one,
    somebody,
    spot,
    the,
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
    site = chance.deal(BUILDINGS)
    place = spot(site)
    zh, en = _beside(chance)
    if chance.odds(0.7):
        measure, other_place = chance.deal(_SITE_LIST)
        while other_place is site:
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
