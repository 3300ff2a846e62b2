"""How old, how much and how many."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.numbers import chinese_number, english_number
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from tools.phrasebook.lexicon.places import BUILDINGS, ROOMS
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import (
    LIKINGS,
    WANTS,
)
from tools.phrasebook.morphology import be, have
from tools.phrasebook.noun_phrases import (
    CHILDREN,
    ELDERS,
    PARENTS,
    PEERS,
    one,
    somebody,
    spot,
    this,
)


def age(chance: Chance) -> Unit:
    """我弟弟十五岁 / My younger brother is 15 years old."""
    people, ages = chance.deal(_AGES)
    who = chance.deal(people)
    number = chance.pick(ages)
    years = build(
        f"{chinese_number(number)}#number 岁#old",
        f"{english_number(number)}#number years#old old#old",
    )
    return build(
        f"{{who}} {{years}} {'了~is' if chance.odds(0.6) else ''}",
        f"{{who}} {be(who.person)}~is~years {{years}}",
        who=who.subject,
        years=years,
        name="age",
    )


_AGES: tuple[tuple[tuple[Named, ...], tuple[int, ...]], ...] = (
    (NAMES, (8, 10, 11, 12, 13, 15, 16, 18, 20, 25, 30, 40)),
    (NAMES, (8, 10, 11, 12, 13, 15, 16, 18, 20, 25, 30, 40)),
    ((PRONOUNS[0], *PRONOUNS[2:4]), (8, 10, 11, 12, 13, 15, 16, 18, 20, 25, 30, 40, 50)),
    (PEERS, (10, 12, 13, 15, 16, 18, 20, 25, 30)),
    (CHILDREN, (5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 18, 20)),
    (PARENTS, (40, 50, 60)),
    (ELDERS, (60, 70, 80)),
)


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

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def floor(chance: Chance) -> Unit:
    """图书馆在三楼 / The library is on the third floor."""
    number = chance.below(6) + 1
    place = spot(chance.deal(_INDOORS))
    return build(
        f"{{place}} 在#at {chinese_number(number)}楼#floor",
        f"{{place}} is~at on#at the~floor {_ORDINALS[number - 1]}#floor floor#floor",
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
    thing = one(chance.deal(_NEEDED)) if verb.zh == "需要" else noun.many
    return build(
        f"每#every {role.measure}~every {{role}} 都~every~verb {{verb}} {{thing}}",
        "every#every {role} {verb} {thing}",
        role=role.one,
        verb=verb.forms["third"],
        thing=thing,
        name="every",
    )


_NEEDED = nouns("手机 电脑 相机 词典 护照 雨伞 笔 本子 地图 手表 桌子 椅子 书架")
_SHARED = (*LIKINGS[:2], *LIKINGS[:2], WANTS[0])

_FOLK = (*KINDS["role"], *KINDS["person"])
