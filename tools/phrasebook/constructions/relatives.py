"""Relative clauses, which stand before their noun in Chinese and after it in English."""

from tools.phrasebook.acts import scene
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.aspects import worn_bare
from tools.phrasebook.constructions.statements import is_having
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.adjectives import QUALITIES, Adjective
from tools.phrasebook.lexicon.nouns import BULK, KINDS, Noun, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import PAST
from tools.phrasebook.lexicon.verbs import DEEDS, FEELINGS, Verb
from tools.phrasebook.morphology import agreeing, be, present
from tools.phrasebook.noun_phrases import RELATIVES, somebody, this


def _makers(names: str) -> dict[str, tuple[Verb, ...]]:
    """What can have been done to each thing: 书 was bought, borrowed, chosen."""
    verbs = select(DEEDS, names)
    things = {noun.zh for verb in verbs for noun in verb.objects}
    return {
        zh: tuple(verb for verb in verbs if zh in {noun.zh for noun in verb.objects})
        for zh in sorted(things)
    }


# What makes a thing what it is, and what may happen to it besides.
_MAKERS = _makers("买 写 画 借 做 选 种")
_HANDLERS = _makers("买 写 画 借 修 洗 做 选 翻译 种")

_RATED: tuple[tuple[Adjective, Noun], ...] = tuple(
    (adjective, noun)
    for adjective in QUALITIES
    for noun in adjective.things
    if noun.zh in _MAKERS and noun.is_counted
)


def made_by(chance: Chance, noun: Noun, makers: dict[str, tuple[Verb, ...]]) -> Unit:
    """他昨天买的书 / the book that he bought yesterday."""
    who = somebody(chance)
    verb = chance.pick(makers[noun.zh]).forms["past"]
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


_DEGREES = (("很", "very"), ("很", "very"), ("非常", "extremely"), ("不", "not"))


def relative_object(chance: Chance) -> Unit:
    """他昨天买的书很有意思 / The book that he bought yesterday is very interesting."""
    draw = chance.below(100)
    adjective, noun = chance.deal(_RATED)
    thing = made_by(chance, noun, _MAKERS if draw < 50 else _HANDLERS)
    if draw < 50:
        zh, en = chance.pick(_DEGREES[:3] if is_having(adjective.plain) else _DEGREES)
        return build(
            f"{{thing}} {zh}#very {{how}}",
            f"{{thing}} {be(thing.person)}~how {en}#very {{how}}",
            thing=thing,
            how=adjective.plain,
        )
    if draw < 70:
        this_ = "these" if thing.person == "plural" else "this"
        return build(
            "这#this 是#is {thing}",
            f"{this_}#this {be(thing.person)}#is {{thing}}",
            thing=thing,
        )
    who = somebody(chance)
    return build(
        "{who} 喜欢#like {thing}",
        f"{{who}} {agreeing('like', who.person)}#like {{thing}}",
        who=who.subject,
        thing=thing,
    )


_FEMALE = {"女孩", "女人"}


def _who_is(chance: Chance, noun: Noun) -> Named:
    """Somebody a girl, boy, woman or man can turn out to be."""
    return chance.deal(_ANYONE if chance.odds(0.5) else _CAN_BE[noun.zh])


def _relatives(names: str) -> tuple[Named, ...]:
    return tuple(named for named in RELATIVES if named.zh[1:] in names.split())


_ANYONE = _relatives("朋友 同学 同事 邻居")
_CAN_BE = {
    "女孩": _relatives("妹妹 女儿"),
    "男孩": _relatives("弟弟 儿子"),
    "女人": _relatives("姐姐 阿姨 妈妈"),
    "男人": _relatives("哥哥 叔叔 爸爸"),
}


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


def relative_maker(chance: Chance) -> Unit:
    """我认识写这本书的作家 / I know the writer who wrote this book."""
    who = somebody(chance)
    verb, noun = chance.deal(_AUTHORED)
    author = chance.deal(_AUTHORS[verb.zh])
    return build(
        "{who} 认识#know {verb} {thing} 的~that {author}",
        f"{{who}} {agreeing('know', who.person)}#know the~author {{author}} who~that {{verb}} "
        "{thing}",
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
