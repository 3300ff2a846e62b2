"""What stands before a noun with 的 in Chinese and after it in English."""

from regard.text.phrasebook.acts import scene
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions.aspects import worn_bare
from regard.text.phrasebook.constructions.particles import placing
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.journeys import land
from regard.text.phrasebook.lexicon.adjectives import QUALITIES, Adjective
from regard.text.phrasebook.lexicon.nouns import BULK, KINDS, Noun, nouns
from regard.text.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from regard.text.phrasebook.lexicon.places import COUNTRIES
from regard.text.phrasebook.lexicon.selection import select
from regard.text.phrasebook.lexicon.times import PAST, SEASONS
from regard.text.phrasebook.lexicon.verbs import DEEDS, FEELINGS, Verb
from regard.text.phrasebook.morphology import be, inflect, present
from regard.text.phrasebook.noun_phrases import OWNERS, RELATIVES, somebody, this

_MAKING = select(DEEDS, "买 写 画 借 修 洗 做 选 翻译 种")


def _makers() -> dict[str, tuple[Verb, ...]]:
    """What can have been done to each thing: 书 was bought, borrowed, chosen."""
    things = {noun.zh for verb in _MAKING for noun in verb.objects}
    return {
        zh: tuple(verb for verb in _MAKING if zh in {noun.zh for noun in verb.objects})
        for zh in sorted(things)
    }


_MAKERS = _makers()
_RATED: tuple[tuple[Adjective, Noun], ...] = tuple(
    (adjective, noun)
    for adjective in QUALITIES
    for noun in adjective.things
    if noun.zh in _MAKERS and noun.is_counted
)


def made_by(chance: Chance, noun: Noun) -> Unit:
    """他昨天买的书 / the book that he bought yesterday."""
    who = somebody(chance)
    verb = chance.pick(_MAKERS[noun.zh]).forms["past"]
    thing = noun.many if noun.is_pair or noun.zh in BULK else noun.one
    if chance.odds(0.5):
        return build(
            "{who} {time} {verb} 的~verb~that {noun}!",
            "the~noun {noun}! that~that {who} {verb} {time}",
            who=who.subject,
            time=chance.deal(PAST),
            verb=verb,
            noun=thing,
            person=thing.person,
            name="relative_object",
        )
    return build(
        "{who} {verb} 的~verb~that {noun}!",
        "the~noun {noun}! that~that {who} {verb}",
        who=who.subject,
        verb=verb,
        noun=thing,
        person=thing.person,
        name="relative_object",
    )


def relative_object(chance: Chance) -> Unit:
    """他昨天买的书很有意思 / The book that he bought yesterday is very interesting."""
    draw = chance.below(100)
    adjective, noun = chance.deal(_RATED)
    thing = made_by(chance, noun)
    if draw < 50:
        zh, en = chance.pick((("很", "very"), ("很", "very"), ("非常", "extremely"), ("不", "not")))
        return build(
            f"{{thing}} {zh}#very {{how}}",
            f"{{thing}} {be(thing.person)}~how {en}#very {{how}}",
            thing=thing,
            how=adjective.plain,
        )
    if draw < 70:
        return build(
            "这#this 是#is {thing}",
            f"{'these' if thing.person == 'plural' else 'this'}#this {be(thing.person)}#is {{thing}}",
            thing=thing,
        )
    who = somebody(chance)
    return build(
        "{who} 喜欢#like {thing}",
        f"{{who}} {inflect('like', present(who.person))}#like {{thing}}",
        who=who.subject,
        thing=thing,
    )


_KIN = tuple(
    named
    for named in RELATIVES
    if not named.zh.endswith(("爸爸", "妈妈", "爷爷", "奶奶", "丈夫", "妻子"))
)
_FEMALE = frozenset(["女孩", "女人"])
_GIRLS = tuple(named for named in _KIN if named.again == "she")
_BOYS = tuple(
    named
    for named in _KIN
    if named.again == "he" and named.zh[1:] in {"哥哥", "弟弟", "叔叔", "儿子"}
)
_ANYONE = tuple(named for named in RELATIVES if named.zh[1:] in {"朋友", "同学", "同事", "邻居"})


def _who_is(chance: Chance, noun: Noun) -> Named:
    """Somebody a girl or boy can turn out to be."""
    if chance.odds(0.5):
        return chance.deal(_ANYONE)
    return chance.deal(_GIRLS if noun.zh in _FEMALE else _BOYS)


def relative_subject(chance: Chance) -> Unit:
    """穿着红色毛衣的女孩是我妹妹 / The girl who is reading is my younger sister."""
    noun = chance.deal(_GROWN)
    draw = chance.below(100)
    if draw < 35:
        doing, where = scene(chance, single=True)
        which = build(
            "正~is~act {where} {act} 的~who {noun}!",
            "the~noun {noun}! who~who is~is~act {act} {where}",
            where=where,
            act=doing.form("ing"),
            noun=noun.one,
        )
    elif draw < 60:
        doing, _ = scene(chance, single=True)
        which = build(
            "正在~is~act {act} 的~who {noun}!",
            "the~noun {noun}! who~who is~is~act {act}",
            act=doing.form("ing"),
            noun=noun.one,
        )
    else:
        wear, thing = worn_bare(chance, "she" if noun.zh in _FEMALE else "he")
        which = build(
            f"{wear}#wear 着~wear~is {{thing}} 的~who {{noun}}!",
            "the~noun {noun}! who~who is~is~wear wearing#wear {thing}",
            thing=thing,
            noun=noun.one,
        )
    if chance.odds(0.6):
        return build(
            "{which} 是#is {whom}",
            "{which} is#is {whom}",
            which=which,
            whom=_who_is(chance, noun).subject,
            name="relative_subject",
        )
    who = chance.deal(_VIEWERS)
    verb = chance.deal(_REGARD)
    return build(
        "{who} {verb} {which}",
        "{who} {verb} {which}",
        who=who.subject,
        verb=verb.forms[present(who.person)],
        which=which,
        name="relative_subject",
    )


_GROWN = select(KINDS["person"], "女孩 男孩 女人 男人")
_VIEWERS = (*PRONOUNS, *NAMES)
_REGARD = select(FEELINGS, "认识 喜欢 爱 相信")


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
        want = inflect("want", present(who.person))
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
    "价格": (("高", "high"), ("低", "low")),
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
        very, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
        return build(
            f"{{of}} {very}#very {how}#how", f"{{of}} is~how {very_en}#very {how_en}#how", of=of
        )
    who = somebody(chance)
    verb, verb_en = chance.pick(_TOLD if zh in {"名字", "价格"} else _KNOWN)
    return build(
        f"{{who}} {verb}#verb {{of}}",
        f"{{who}} {inflect(verb_en, present(who.person))}#verb {{of}}",
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
            f"{{who}} {inflect(verb_en, present(who.person))}#verb the~part {en}#part of#of {{land}}",
            who=who.subject,
            land=country.bare,
            name="of_places",
        )
    if draw < 75:
        who = somebody(chance)
        verb, verb_en = chance.pick((("喜欢", "like"), ("爱", "love"), ("讨厌", "hate")))
        return build(
            f"{{who}} {verb}#verb {{land}} 的~in {{season}}!",
            f"{{who}} {inflect(verb_en, present(who.person))}#verb {{season}} in~in {{land}}",
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
            ("有#verb", inflect("have", present(who.person))),
            ("想要#verb", inflect("want", present(who.person))),
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


def relative_maker(chance: Chance) -> Unit:
    """我认识写这本书的作家 / I know the writer who wrote this book."""
    who = somebody(chance)
    verb, noun = chance.deal(_AUTHORED)
    author = chance.deal(_AUTHORS[verb.zh])
    return build(
        "{who} 认识#know {verb} {thing} 的~that {author}",
        f"{{who}} {inflect('know', present(who.person))}#know the~author {{author}} who~that {{verb}} {{thing}}",
        who=who.subject,
        verb=verb.forms["past"],
        thing=this(chance, noun),
        author=author.one,
        name="relative_maker",
    )


_AUTHORS: dict[str, tuple[Noun, ...]] = {
    "写": nouns("作家 女孩 男孩 女人 男人 记者"),
    "画": nouns("画家 女孩 男孩 女人 男人"),
    "买": nouns("女孩 男孩 女人 男人 商人 医生 律师"),
    "修": nouns("工人 工程师 男人 男孩"),
    "翻译": nouns("教授 老师 女人 学生 作家"),
}
_AUTHORED = tuple(
    (verb, noun)
    for verb in DEEDS
    if verb.zh in _AUTHORS
    for noun in verb.objects
    if noun.is_counted
)
