"""What stands before a noun with 的 in Chinese and after it in English."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.particles import placing
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import land
from tools.phrasebook.lexicon.adjectives import QUALITIES, Adjective
from tools.phrasebook.lexicon.nouns import BULK, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import COUNTRIES
from tools.phrasebook.lexicon.times import SEASONS
from tools.phrasebook.morphology import agreeing, be
from tools.phrasebook.noun_phrases import OWNERS, RELATIVES, somebody, this


def located(chance: Chance) -> Unit:
    """桌子上的书是他的 / The book on the table is his."""
    noun, where = placing(chance)
    thing = noun.many if noun.is_pair or noun.zh in BULK else noun.one
    which = build(
        "{where}! 的~where {noun}!",
        "the~noun {noun}! {where}",
        where=where,
        noun=thing,
        person=thing.person,
        name="located",
    )
    is_ = be(which.person)
    draw = chance.below(100)
    if draw < 50:
        owner = chance.deal(OWNERS)
        if owner.hers is None:
            return build(
                "{which} 是#is {owner} 的#of",
                f"{{which}} {is_}#is {{owner}} 's#of",
                which=which,
                owner=owner.subject,
            )
        return build(
            f"{{which}} 是#is {owner.zh}#of 的~of",
            f"{{which}} {is_}#is {owner.hers}#of",
            which=which,
        )
    if draw < 75:
        who = somebody(chance)
        want = agreeing("want", who.person)
        return build(
            "{who} 想要#want {which}",
            f"{{who}} {want}#want {{which}}",
            who=who.subject,
            which=which,
        )
    fits = _QUALITIES_OF.get(noun.zh)
    if not fits:
        return located(chance)
    adjective = chance.pick(fits)
    return build(
        "{which} 很#very {how}",
        f"{{which}} {is_}~how very#very {{how}}",
        which=which,
        how=adjective.plain,
    )


_QUALITIES_OF: dict[str, tuple[Adjective, ...]] = {
    noun.zh: tuple(each for each in QUALITIES if noun in each.things)
    for each in QUALITIES
    for noun in each.things
}

_ASPECTS: tuple[tuple[str, str, str], ...] = (
    ("颜色", "color", "clothing accessory car flower 房子 墙 沙发 自行车 雨伞"),
    ("名字", "name", "book show art 河 山 湖 桥 船 诗"),
    ("价格", "price", "machine clothing car ridden instrument 房子 手表 票"),
    ("结尾", "ending", "show 小说 故事 诗 歌 文章"),
)

_ASPECT_THINGS = tuple((zh, en, nouns(things)) for zh, en, things in _ASPECTS)

_VERDICTS: dict[str, tuple[tuple[str, str], ...]] = {
    "颜色": (("漂亮", "beautiful"),),
    "名字": (("有意思", "interesting"), ("简单", "simple"), ("长", "long")),
    "价格": (("高", "high"),),
    "结尾": (("有意思", "interesting"), ("可怕", "scary"), ("简单", "simple")),
}

_KNOWN = (("喜欢", "like"), ("讨厌", "hate"))

_TOLD = (("知道", "know"), ("记得", "remember"))


def of_things(chance: Chance) -> Unit:
    """我喜欢这条裙子的颜色 / I like the color of this skirt."""
    zh, en, things = chance.deal(_ASPECT_THINGS)
    of = build(
        f"{{thing}} 的#of {zh}#part!",
        f"the~part {en}#part! of#of {{thing}}",
        thing=this(chance, chance.deal(things)),
        name="of_things",
    )
    if chance.odds(0.45):
        how, how_en = chance.pick(_VERDICTS[zh])
        very, very_en = chance.pick((("很", "very"), ("非常", "extremely")))
        return build(
            f"{{of}} {very}#very {how}#how", f"{{of}} is~how {very_en}#very {how_en}#how", of=of
        )
    who = somebody(chance)
    verb, verb_en = chance.pick(_TOLD if zh in {"名字", "价格"} else _KNOWN)
    return build(
        f"{{who}} {verb}#verb {{of}}",
        f"{{who}} {agreeing(verb_en, who.person)}#verb {{of}}",
        who=who.subject,
        of=of,
    )


_LAND_ASPECTS = (("历史", "history"), ("文化", "culture"), ("首都", "capital"), ("音乐", "music"))


def of_places(chance: Chance) -> Unit:
    """我喜欢中国的文化 / I like the culture of China."""
    draw = chance.below(100)
    if draw < 40:
        country = chance.deal(COUNTRIES)
        zh, en = chance.pick(_LAND_ASPECTS)
        who = somebody(chance)
        verb, verb_en = chance.pick(
            (("喜欢", "like"), ("学习", "study"), ("爱", "love"), ("想念", "miss"))
        )
        if zh == "首都":
            verb, verb_en = "喜欢", "like"
        return build(
            f"{{who}} {verb}#verb {{land}} 的#of {zh}#part",
            f"{{who}} {agreeing(verb_en, who.person)}#verb the~part {en}#part of#of {{land}}",
            who=who.subject,
            land=country.bare,
            name="of_places",
        )
    if draw < 75:
        who = somebody(chance)
        verb, verb_en = chance.pick((("喜欢", "like"), ("爱", "love"), ("讨厌", "hate")))
        return build(
            f"{{who}} {verb}#verb {{land}} 的~in {{season}}!",
            f"{{who}} {agreeing(verb_en, who.person)}#verb {{season}} in~in {{land}}",
            who=who.subject,
            land=land(chance),
            season=chance.deal(SEASONS),
            name="of_places",
        )
    season = chance.deal(SEASONS)
    how, how_en = chance.pick(_CLIMATES[season.zh[0]])
    very, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
    return build(
        f"{{land}} 的~in {{season}}! {very}#very {how}#how",
        f"{{season}} in~in {{land}} is~how {very_en}#very {how_en}#how",
        land=land(chance),
        season=season,
        name="of_places",
    )


_CLIMATES: dict[str, tuple[tuple[str, str], ...]] = {
    "春天": (("暖和", "warm"), ("短", "short"), ("漂亮", "beautiful")),
    "夏天": (("热", "hot"), ("长", "long"), ("凉快", "cool")),
    "秋天": (("凉快", "cool"), ("短", "short"), ("漂亮", "beautiful")),
    "冬天": (("冷", "cold"), ("长", "long"), ("漂亮", "beautiful")),
}


def of_mine(chance: Chance) -> Unit:
    """安娜是我的一个朋友 / Anna is a friend of mine."""
    who = chance.deal(NAMES)
    owner = chance.deal(PRONOUNS)
    zh, en, measure = chance.deal(_ACQUAINTANCES)
    return build(
        f"{{who}} 是#is {owner.zh}#owner 的#of 一~one {measure}~one {zh}#friend",
        f"{{who}} is#is a~one~friend {en}#friend of#of {owner.hers}#owner",
        who=who.subject,
        name="of_mine",
    )


_ACQUAINTANCES = (
    ("朋友", "friend", "个"),
    ("同学", "classmate", "个"),
    ("同事", "colleague", "个"),
    ("邻居", "neighbor", "个"),
    ("学生", "student", "个"),
)


def portrait(chance: Chance) -> Unit:
    """他有一张我妈妈的照片 / He has a photo of my mother."""
    who = somebody(chance)
    subject = chance.deal(_PICTURED)
    while subject.zh == who.zh:
        subject = chance.deal(_PICTURED)
    zh, en = chance.pick(
        (
            ("有#verb", agreeing("have", who.person)),
            ("想要#verb", agreeing("want", who.person)),
            ("找到#verb 了~verb", "found"),
            ("藏#verb 了~verb", "hid"),
            ("丢#verb 了~verb", "lost"),
        )
    )
    return build(
        f"{{who}} {zh} 一~one 张~one {{subject}} 的#of 照片#photo",
        f"{{who}} {en}#verb a~one~photo photo#photo of#of {{subject}}",
        who=who.subject,
        subject=subject.object,
        name="portrait",
    )


_PICTURED = (*(named for named in RELATIVES if named.zh[0] != "你"), *NAMES)
