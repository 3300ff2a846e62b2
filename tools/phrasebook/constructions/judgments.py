"""What one thinks of something: too much, not enough, how beautiful, easy or hard to do."""

from tools.phrasebook.acts import Act
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.comparisons import of_people
from tools.phrasebook.constructions.statements import described
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.adjectives import QUALITIES
from tools.phrasebook.lexicon.nouns import nouns
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import ACTIONS, DUTIES, LEISURE
from tools.phrasebook.morphology import be
from tools.phrasebook.noun_phrases import known, somebody, the, this


def easy_to(chance: Chance) -> Unit:
    """学中文很容易 / It is very easy to learn Chinese."""
    zh, en, verbs = chance.deal(_EASE)
    verb = chance.deal(verbs)
    act = Act(verb, chance.deal(verb.objects).many) if verb.objects else Act(verb)
    very, very_en = chance.pick(_DEGREES[:2] if zh in {"重要", "有意思"} else _DEGREES)
    return build(
        f"{{act}} {very}#very {zh}#how",
        f"it~act is~how {very_en}#very {en}#how to~act {{act}}",
        act=act.form("base"),
        name="easy_to",
    )


_DEGREES = (("很", "very"), ("非常", "extremely"), ("不", "not"))

_CRAFTS = (
    *select(ACTIONS, "写 画 学 学习 教 做 种 翻译 打"),
    *select((*LEISURE, *DUTIES), "游泳 跳舞 滑雪 滑冰 骑马 开车 弹钢琴 弹吉他 拉小提琴 做饭 爬山"),
)

_EASE = (
    ("容易", "easy", _CRAFTS),
    ("难", "difficult", _CRAFTS),
    ("简单", "simple", select(ACTIONS, "做 种 画")),
    ("有意思", "interesting", (*select(ACTIONS, "写 画 学 教 做 种 收集 看 听"), *LEISURE)),
    ("重要", "important", (*select(ACTIONS, "学 学习"), *select(DUTIES, "休息 锻炼 睡觉 学习"))),
)

_TASKS: tuple[tuple[str, str, str], ...] = (
    ("学", "learn", "language 网球 象棋 钢琴 小提琴 吉他"),
    ("唱", "sing", "歌"),
    ("懂", "understand", "诗 文章 书 小说 电影 故事 问题"),
    ("做", "make", "baked snack 玩具"),
    ("洗", "wash", "clothing 毛巾 毯子 tableware"),
    ("修", "repair", "machine ridden car 钟"),
    ("画", "draw", "马 树 wild flower"),
    ("搬", "move", "furniture 冰箱 洗衣机 钢琴"),
    ("用", "use", "电脑 手机 相机 词典 洗衣机"),
    ("翻译", "translate", "诗 文章 信 小说 故事"),
)

_TASK_THINGS = tuple((zh, en, nouns(things)) for zh, en, things in _TASKS)


def hard_to(chance: Chance) -> Unit:
    """这首歌很难唱 / This song is very difficult to sing."""
    verb, verb_en, things = chance.deal(_TASK_THINGS)
    noun = chance.deal(things)
    thing = this(chance, noun) if noun.is_counted and noun.zh not in _LEARNED else the(noun)
    zh, en = chance.pick((("难", "difficult"), ("容易", "easy")))
    very, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
    return build(
        f"{{thing}} {very}#very {zh}#how {verb}#verb",
        f"{{thing}} {be(thing.person)}~how {very_en}#very {en}#how to~verb {verb_en}#verb",
        thing=thing,
        name="hard_to",
    )


_LEARNED = {"钢琴", "小提琴", "吉他"}


def too(chance: Chance) -> Unit:
    """这件衬衫太贵了 / This shirt is too expensive."""
    who, how = described(chance)
    while how.zh[0] in _NEVER_TOO:
        who, how = described(chance)
    return build(
        "{who} 太#too {how} 了~too",
        f"{{who}} {be(who.person)}~how too#too {{how}}",
        who=who,
        how=how,
        name="too",
    )


_NEVER_TOO = {
    *("健康", "友好", "勇敢", "诚实", "可爱", "满意", "有耐心", "有礼貌"),
    *("干净", "新鲜", "有用", "有意思", "好吃", "好喝", "漂亮"),
}


def not_enough(chance: Chance) -> Unit:
    """这张桌子不够大 / This table is not big enough."""
    if chance.odds(0.55):
        who, adjective = somebody(chance).subject, chance.deal(_LACKED)
    else:
        adjective = chance.deal(_LACKED_OF_THINGS)
        who = known(chance, chance.deal(adjective.things))
    return build(
        "{who} 不#no~is 够#enough {how}",
        f"{{who}} {be(who.person)}~is~how not#no {{how}} enough#enough",
        who=who,
        how=adjective.plain,
        name="not_enough",
    )


_LACKED = of_people("高 聪明 友好 努力 强壮 有钱 勇敢 诚实 细心 有耐心 有礼貌 健康")

_LACKED_OF_THINGS = select(
    QUALITIES, "大 新 便宜 长 厚 干净 甜 新鲜 热 漂亮 快 舒服 安全 有意思 简单"
)


def exclamation(chance: Chance) -> Unit:
    """这朵花多么漂亮啊！ / How beautiful this flower is!"""
    who, how = described(chance)
    return build(
        "{who} 多么#very {how} 啊~very ！#end",
        f"how#very {{how}} {{who}} {be(who.person)}~how !#end",
        who=who,
        how=how,
        name="exclamation",
    )


def opinion(chance: Chance) -> Unit:
    """我觉得这本书很有意思 / I find this book very interesting."""
    who = somebody(chance)
    thing, how = described(chance)
    while thing.zh[0] == who.subject.zh[0]:
        thing, how = described(chance)
    think = "thinks" if who.person == "singular" else "think"
    return build(
        "{who} 觉得#think {thing} 很#very~is {how}",
        f"{{who}} {think}#think {{thing}} {be(thing.person)}~is~how very#very {{how}}",
        who=who.subject,
        thing=thing,
        how=how,
        name="opinion",
    )
