"""Prepositional phrases, which Chinese puts before the verb: 给, 对, 用, 跟, 向, 为."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import NOTHING, Unit, build
from tools.phrasebook.journeys import land
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.times import FUTURE, HABIT, OFTEN, PAST
from tools.phrasebook.morphology import agreeing, be, inflect
from tools.phrasebook.noun_phrases import certain, other, single, somebody


def call(chance: Chance) -> Unit:
    """我昨天给妈妈打电话了 / I called my mother yesterday."""
    who = somebody(chance)
    whom = other(chance, who).object
    draw = chance.below(100)
    if draw < 40:
        return build(
            "{who} {time} 给~call {whom} 打电话#call 了~call",
            "{who} called#call {whom} {time}",
            who=who.subject,
            whom=whom,
            time=chance.deal(PAST),
            name="call",
        )
    if draw < 70:
        return build(
            "{who} {often} 给~call {whom} 打电话#call",
            f"{{who}} {{often}} {agreeing('call', who.person)}#call {{whom}}",
            who=who.subject,
            whom=whom,
            often=chance.deal(OFTEN),
            name="call",
        )
    return build(
        "{who} {time} 会#will 给~call {whom} 打电话#call",
        "{who} will#will call#call {whom} {time}",
        who=who.subject,
        whom=whom,
        time=chance.deal(FUTURE),
        name="call",
    )


_FOR: tuple[tuple[str, str, str, str], ...] = (
    (
        "买",
        "buy",
        "for",
        "clothing accessory fruit flower snack drink book 玩具 礼物 蛋糕 票 吉他 自行车",
    ),
    ("做", "make", "for", "baked 三明治 汉堡 沙拉 玩具"),
    ("选", "choose", "for", "clothing accessory 礼物 书 小说"),
    ("画", "draw", "for", "flower wild 马 地图"),
    ("写", "write", "to", "信"),
    ("写", "write", "for", "诗 故事"),
    ("寄", "mail", "to", "信 包裹 明信片 礼物 照片 书"),
)

_FOR_THINGS = tuple((zh, en, to, nouns(things)) for zh, en, to, things in _FOR)


def for_somebody(chance: Chance) -> Unit:
    """他给我买了一把雨伞 / He bought an umbrella for me."""
    who = somebody(chance)
    zh, en, to, things = chance.deal(_FOR_THINGS)
    thing = certain(chance, chance.deal(things), "aan" if en == "buy" else "a")
    whom = other(chance, who).object
    if chance.odds(0.6):
        return build(
            f"{{who}} 给#to {{whom}} {zh}#verb 了~verb {{thing}}",
            f"{{who}} {inflect(en, 'past')}#verb {{thing}} {to}#to {{whom}}",
            who=who.subject,
            whom=whom,
            thing=thing,
            name="for_somebody",
        )
    want = "wants" if who.person == "singular" else "want"
    return build(
        f"{{who}} 想#want 给#to {{whom}} {zh}#verb {{thing}}",
        f"{{who}} {want}#want to~verb~want {en}#verb {{thing}} {to}#to {{whom}}",
        who=who.subject,
        whom=whom,
        thing=thing,
        name="for_somebody",
    )


def gift(chance: Chance) -> Unit:
    """他送了我一本书 / He gave me a book."""
    who = somebody(chance)
    zh, en = chance.pick((("送", "gave"), ("送给", "gave")))
    return build(
        f"{{who}} {zh}#give 了~give {{whom}} {{thing}}",
        f"{{who}} {en}#give {{whom}} {{thing}}",
        who=who.subject,
        whom=other(chance, who).object,
        thing=certain(chance, chance.deal(_GIFTS), "a"),
        name="gift",
    )


_GIFTS = nouns(
    "clothing accessory flower book pet 礼物 玩具 相机 手机 照片 画 蛋糕 明信片 吉他 巧克力 笔"
)

_TOWARDS: tuple[tuple[str, str, str], ...] = (
    ("很#very 友好#how", "very#very friendly#how", "to"),
    ("很#very 有礼貌#how", "very#very polite#how", "to"),
    ("很#very 好#how", "very#very good#how", "to"),
    ("很#very 满意#how", "very#very satisfied#how", "with"),
    ("很#very 有耐心#how", "very#very patient#how", "with"),
    ("很#very 失望#how", "very#very disappointed#how", "with"),
)


def towards(chance: Chance) -> Unit:
    """他对我很友好 / He is very friendly to me."""
    who = somebody(chance)
    zh, en, to = chance.deal(_TOWARDS)
    return build(
        f"{{who}} 对#to {{whom}} {zh}",
        f"{{who}} {be(who.person)}~how {en} {to}#to {{whom}}",
        who=who.subject,
        whom=other(chance, who).object,
        name="towards",
    )


def interest(chance: Chance) -> Unit:
    """我对音乐很感兴趣 / I am very interested in music."""
    who = somebody(chance)
    thing = land(chance) if chance.odds(0.3) else chance.deal(_INTERESTS).many
    draw = chance.below(3)
    very = ("很#very", "very#very") if draw == 0 else ("不#very", "not#very")
    zh, en = very if draw < 2 else ("", "")
    return build(
        f"{{who}} 对#in {{thing}} {zh} 感兴趣#interest",
        f"{{who}} {be(who.person)}~interest {en} interested#interest in#in {{thing}}",
        who=who.subject,
        thing=thing,
        name="interest",
    )


_INTERESTS = (
    *KINDS["subject"],
    *KINDS["taste"],
    *nouns("language sport show 诗 小说 照片 手表 汽车 飞机 船 摩托车 flower 蝴蝶"),
)

_TOOLS: tuple[tuple[str, str, str, str], ...] = (
    ("用#with 筷子#tool 吃饭#verb", "eat#verb", "with#with chopsticks#tool", ""),
    ("用#with 勺子#tool 吃饭#verb", "eat#verb", "with#with a~tool spoon#tool", ""),
    ("用#with 叉子#tool 吃饭#verb", "eat#verb", "with#with a~tool fork#tool", ""),
    (
        "用#with 铅笔#tool 写#verb",
        "write#verb",
        "with#with a~tool pencil#tool",
        "信 小说 故事 诗 日记",
    ),
    (
        "用#with 电脑#tool 写#verb",
        "write#verb",
        "on#with a~tool computer#tool",
        "信 小说 故事 诗 文章",
    ),
    (
        "用#with 铅笔#tool 画#verb",
        "draw#verb",
        "with#with a~tool pencil#tool",
        "flower 树 马 wild 地图",
    ),
    (
        "用#with 手机#tool 拍照#verb",
        "take#verb photos#verb",
        "with#with a~tool cell#tool phone#tool",
        "",
    ),
    ("用#with 相机#tool 拍照#verb", "take#verb photos#verb", "with#with a~tool camera#tool", ""),
    (
        "用#with 手机#tool 看#verb",
        "watch#verb",
        "on#with a~tool cell#tool phone#tool",
        "电影 比赛 节目 电视剧",
    ),
    (
        "用#with 电脑#tool 看#verb",
        "watch#verb",
        "on#with a~tool computer#tool",
        "电影 比赛 节目 电视剧",
    ),
    (
        "用#with 手机#tool 听#verb",
        "listen#verb to#verb",
        "on#with a~tool cell#tool phone#tool",
        "音乐 歌 故事",
    ),
)

_TOOL_THINGS = tuple((zh, en, tool, nouns(things)) for zh, en, tool, things in _TOOLS)


def instrument(chance: Chance) -> Unit:
    """他常常用筷子吃饭 / He often eats with chopsticks."""
    who = somebody(chance)
    often = chance.deal(OFTEN)
    if chance.odds(0.35):
        language = chance.deal(KINDS["language"]).one
        zh, en, things = chance.pick(_IN_LANGUAGE)
        thing = chance.deal(things).many if things else NOTHING
        return build(
            f"{{who}} {{often}} 用#in {{language}} {zh}#verb {{thing}}",
            f"{{who}} {{often}} {agreeing(en, who.person)}#verb {{thing}} in#in {{language}}",
            who=who.subject,
            often=often,
            language=language,
            thing=thing,
            name="instrument",
        )
    zh, en, tool, things = chance.deal(_TOOL_THINGS)
    head, _, rest = en.partition("#")
    return build(
        f"{{who}} {{often}} {zh} {{thing}}",
        f"{{who}} {{often}} {agreeing(head, who.person)}#{rest} {{thing}} {tool}",
        who=who.subject,
        often=often,
        thing=chance.deal(things).many if things else NOTHING,
        name="instrument",
    )


_IN_LANGUAGE = (
    ("写", "write", nouns("信 诗 小说 故事 文章 日记")),
    ("唱歌", "sing", ()),
    ("聊天", "chat", ()),
    ("讲", "tell", nouns("故事")),
)


def learn_from(chance: Chance) -> Unit:
    """我跟她学中文 / I learn Chinese from her."""
    who = somebody(chance)
    thing = chance.deal(_TAUGHT).one
    return build(
        "{who} {time} 跟#from {whom} 学#learn {thing}",
        f"{{who}} {agreeing('learn', who.person)}#learn {{thing}} from#from {{whom}} {{time}}",
        who=who.subject,
        whom=other(chance, who).object,
        time=chance.deal(HABIT),
        thing=thing,
        name="learn_from",
    )


_TAUGHT = (*KINDS["language"], *nouns("网球 象棋 数学"))


def borrow_from(chance: Chance) -> Unit:
    """他向我借了一本书 / He borrowed a book from me; 他借了一本书 / He borrowed a book."""
    who = somebody(chance)
    thing = certain(chance, chance.deal(_LENT), "aat")
    if chance.odds(0.3):
        return build(
            "{who} 借#borrow 了~borrow {thing}",
            "{who} borrowed#borrow {thing}",
            who=who.subject,
            thing=thing,
            name="borrow_from",
        )
    return build(
        "{who} 向#from {whom} 借#borrow 了~borrow {thing}",
        "{who} borrowed#borrow {thing} from#from {whom}",
        who=who.subject,
        whom=other(chance, who).object,
        thing=thing,
        name="borrow_from",
    )


_LENT = nouns("book ridden 雨伞 相机 汽车 词典 吉他 小提琴 手机 笔 铅笔 地图 大衣 领带 箱子 刀")


def said_to(chance: Chance) -> Unit:
    """他昨天向我道歉了 / He apologized to me yesterday."""
    who = somebody(chance)
    zh, en, to = chance.deal(_TOLD)
    return build(
        f"{{who}} {{time}} 向#to {{whom}} {zh}#verb 了~verb",
        f"{{who}} {inflect(en, 'past').replace(' ', '#verb ')}#verb {to}#to {{whom}} {{time}}",
        who=who.subject,
        whom=other(chance, who).object,
        time=chance.deal(PAST),
        name="said_to",
    )


_TOLD = (("道歉", "apologize", "to"), ("挥手", "wave", "to"), ("问好", "say hello", "to"))


def concern(chance: Chance) -> Unit:
    """我为她担心 / I am worried about her; 我们为他感到骄傲 / We are proud of him."""
    who = somebody(chance)
    zh, en, of = chance.deal(_CONCERNS)
    return build(
        f"{{who}} 为#of {{whom}} {zh}",
        f"{{who}} {be(who.person)}~feel {en} {of}#of {{whom}}",
        who=who.subject,
        whom=other(chance, who).object,
        name="concern",
    )


_CONCERNS = (
    ("担心#feel", "worried#feel", "about"),
    ("感到~feel 骄傲#feel", "proud#feel", "of"),
    ("感到~feel 高兴#feel", "happy#feel", "for"),
    ("感到~feel 难过#feel", "sad#feel", "for"),
)

_LINKED = (
    ("吵架", "quarreled", "with"),
    ("见面", "met", "with"),
    ("说话", "talked", "with"),
    ("聊天", "chatted", "with"),
    ("跳舞", "danced", "with"),
)


def with_somebody(chance: Chance) -> Unit:
    """他上个星期跟安娜吵架了 / He quarreled with Anna last week."""
    who = single(chance)
    zh, en, with_ = chance.deal(_LINKED)
    whom = chance.deal(_PARTNERS)
    while whom.zh == who.zh:
        whom = chance.deal(_PARTNERS)
    return build(
        f"{{who}} {{time}} 跟#with {{whom}} {zh}#verb 了~verb",
        f"{{who}} {en}#verb {with_ and with_ + '#with'} {{whom}} {{time}}",
        who=who.subject,
        whom=whom.object,
        time=chance.deal(PAST),
        name="with_somebody",
    )


_PARTNERS = (*NAMES, *(named for named in PRONOUNS if named.zh not in {"我们", "他们"}))
