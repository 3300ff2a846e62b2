"""How many, how much, how old, how big, how long, and which."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import land
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.morphology import be, do, have
from tools.phrasebook.noun_phrases import CHILDREN, RELATIVES, asked, known, owned, this


def how_many(chance: Chance) -> Unit:
    """你有几本书？ / How many books do you have?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 50:
        zh, verb, to = "有#verb", "have#verb", ""
    elif draw < 80:
        zh, verb, to = "想#want 买#verb", "buy#verb", "want#want to~verb~want"
    else:
        zh, verb, to = "需要#verb", "need#verb", ""
    number, noun = chance.pick(("几", "多少")), chance.deal(_COUNTED)
    measure = noun.measure
    aid = do(who.person) + ("~want" if to else "~verb")
    if noun.is_pair:
        return build(
            f"{{who}} {zh} {number}#many {measure}#pair {{noun}} ？#end",
            f"how#many many#many pairs#pair of~pair~noun {{noun}} {aid} {{who}} {to} {verb} ?#end",
            who=who.subject,
            noun=noun.many,
            name="how_many",
        )
    return build(
        f"{{who}} {zh} {number}#many {measure}~many {{noun}} ？#end",
        f"how#many many#many {{noun}} {aid} {{who}} {to} {verb} ?#end",
        who=who.subject,
        noun=noun.many,
        name="how_many",
    )


_COUNTED = nouns(
    "carried clothing accessory book tableware fruit vegetable snack flower machine furniture pet"
)


def which(chance: Chance) -> Unit:
    """你喜欢哪件衬衫？ / Which shirt do you like?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 60:
        zh, verb, to = "喜欢#verb", "like#verb", ""
    else:
        zh, verb, to = "想#want 买#verb", "buy#verb", "want#want to~verb~want"
    noun = chance.deal(_BOUGHT if to else _CHOSEN)
    aid = do(who.person) + ("~want" if to else "~verb")
    thing = "pair#pair of~pair~noun {noun}" if noun.is_pair else "{noun}"
    measure = noun.measure + ("#pair" if noun.is_pair else "~which")
    return build(
        f"{{who}} {zh} 哪#which {measure} {{noun}} ？#end",
        f"which#which {thing} {aid} {{who}} {to} {verb} ?#end",
        who=who.subject,
        noun=noun.one,
        name="which",
    )


_BOUGHT = nouns(
    "clothing accessory book furniture machine container car ridden instrument 画 手机 票"
)

_CHOSEN = nouns(
    "clothing accessory book furniture machine container car ridden instrument pet flower art show"
)


def how_much(chance: Chance) -> Unit:
    """这本书多少钱？ / How much is this book?"""
    thing = this(chance, chance.deal(_SOLD))
    return build(
        "{thing} 多少#much 钱~much ？#end",
        f"how#much much#much {be(thing.person)}~thing {{thing}} ?#end",
        thing=thing,
        name="how_much",
    )


_SOLD = nouns(
    "clothing accessory book tableware flower household machine furniture car ridden instrument "
    "票 雨伞 书包 词典 地图 fruit vegetable drink dish baked snack"
)


def how_old(chance: Chance) -> Unit:
    """你弟弟多大了？ / How old is your younger brother?"""
    draw = chance.below(100)
    if draw < 65:
        who = chance.deal(_RELATED)
    else:
        who = chance.deal(NAMES) if draw < 90 else chance.pick(PRONOUNS[1:4])
    zh = "几岁" if who in CHILDREN else "多大"
    return build(
        f"{{who}} {zh}#old 了~old ？#end",
        f"how#old old#old {be(who.person)}~old {{who}} ?#end",
        who=who.subject,
        name="how_old",
    )


_RELATED = tuple(named for named in RELATIVES if named.zh[0] != "我")


def how_big(chance: Chance) -> Unit:
    """那条河有多长？ / How long is that river?"""
    zh, en, things = chance.deal(_MEASURES)
    thing = known(chance, chance.deal(things))
    if chance.odds(0.3):
        thing = owned(chance.deal(NAMES), chance.deal(things)) if things is _WEIGHTS else thing
    return build(
        f"{{thing}} 有~how 多#how {zh}#big ？#end",
        f"how#how {en}#big {be(thing.person)}~how {{thing}} ?#end",
        thing=thing,
        name="how_big",
    )


_WEIGHTS = nouns("container 包裹 自行车 冰箱 洗衣机 西瓜 狗 猫 猪 大象")

_MEASURES = (
    ("长", "long", nouns("河 桥 路 裙子 围巾 船 火车 蛇 信 文章 裤子")),
    ("重", "heavy", _WEIGHTS),
    ("大", "big", nouns("湖 房子 container furniture 镜子 蛋糕")),
    ("高", "high", nouns("山 桥 墙")),
    ("高", "tall", nouns("树 书架 长颈鹿 柜子 房子")),
    ("厚", "thick", nouns("book 墙 毯子 本子")),
)


def how_long(chance: Chance) -> Unit:
    """你在北京住了多久了？ / How long have you lived in Beijing?"""
    who = asked(chance)
    has = have(who.person)
    if chance.odds(0.5):
        return build(
            "{who} 在#at {place} 住#live 了~live 多久#long 了~has ？#end",
            f"how#long long#long {has}~has~live {{who}} lived#live in#at {{place}} ?#end",
            who=who.subject,
            place=land(chance),
            name="how_long",
        )
    verb, things = chance.pick((("学", KINDS["language"]), ("教", KINDS["subject"])))
    en = "studied" if verb == "学" else "taught"
    return build(
        f"{{who}} {verb}#learn {{thing}} {verb}~learn 了~learn 多久#long 了~has ？#end",
        f"how#long long#long {has}~has~learn {{who}} {en}#learn {{thing}} ?#end",
        who=who.subject,
        thing=chance.deal(things).one,
        name="how_long",
    )
