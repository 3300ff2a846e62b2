"""把 and 被, and what Chinese says after the verb: results, possibility and manner."""

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build, word
from tools.phrasebook.lexicon.nouns import KINDS, Noun, nouns
from tools.phrasebook.lexicon.people import NAMES
from tools.phrasebook.morphology import agreeing, be, inflect
from tools.phrasebook.noun_phrases import (
    OWNERS,
    RELATIVES,
    ROLES,
    definite,
    known,
    other,
    owned,
    somebody,
    the,
    this,
)

_SURFACES = nouns("桌子 椅子 床 沙发 书架")
_INSIDES = nouns("箱子 书包 盒子 袋子 柜子 冰箱 篮子")
_FOR_SURFACES = nouns("carried book tableware 眼镜 帽子 手表 玩具 花 篮子 信 报纸")
_FOR_INSIDES = {
    "冰箱": nouns("fruit vegetable 牛奶 果汁 啤酒 蛋糕 可乐"),
    "篮子": nouns("fruit vegetable 鸡蛋 花 面包"),
    "书包": nouns("book 笔 铅笔 本子 手机 钥匙 雨伞 词典"),
    "箱子": nouns("clothing accessory book 相机 毛巾 护照 礼物"),
    "盒子": nouns("戒指 手表 钥匙 笔 照片 信 邮票 礼物 玩具 票"),
    "袋子": nouns("fruit vegetable 衬衫 毛巾 玩具 鞋 雨伞"),
    "柜子": nouns("tableware clothing 毛巾 毯子 枕头 相机"),
}


def placing(chance: Chance) -> tuple[Noun, Unit]:
    """A thing and where it may lie: 书, 桌子上 / on the table."""
    if chance.odds(0.5):
        noun = chance.deal(_FOR_SURFACES)
        surface = chance.pick(_SURFACES[:1] if noun in KINDS["tableware"] else _SURFACES)
        return noun, inside(surface, "上", "on")
    noun = chance.deal(_INSIDES)
    return chance.deal(_FOR_INSIDES[noun.zh]), inside(noun, "里", "in")


def inside(noun: Noun, zh: str, en: str) -> Unit:
    """桌子上 / on the table: its head is where 上 and "on" stand."""
    return build(f"{{noun}} {zh}#at!", f"{en}#at! the~noun {{noun}}", noun=noun.one)


def ba_put(chance: Chance) -> Unit:
    """他把书放在桌子上了 / He put the book on the table."""
    noun, where = placing(chance)
    who = somebody(chance)
    thing = the(noun)
    if chance.odds(0.3):
        thing = this(chance, noun) if chance.odds(0.5) else owned(chance.deal(OWNERS), noun)
    return build(
        "{who} 把~thing~put {thing} 放#put 在~where {where} 了~put",
        "{who} put#put {thing} {where}",
        who=who.subject,
        thing=thing,
        where=where,
        name="ba_put",
    )


_SPOILT: tuple[tuple[str, str, tuple[Noun, ...]], ...] = (
    ("打破", "break", nouns("杯子 盘子 碗 瓶子 镜子 窗户")),
    ("弄丢", "lose", nouns("carried 眼镜 手表 手套 戒指 帽子")),
    ("弄坏", "break", nouns("machine ridden 钟 玩具 椅子 灯 手机 吉他")),
    ("吃完", "finish", nouns("baked dish 饺子 苹果")),
    ("喝完", "finish", nouns("drink")),
    ("卖掉", "sell", nouns("car ridden 房子 钢琴 吉他 相机 马 牛")),
    ("关上", "close", nouns("opening 箱子 盒子 书包 冰箱 柜子")),
    ("修好", "fix", nouns("machine ridden car 钟 灯 椅子 门 手机")),
)


def ba_done(chance: Chance) -> Unit:
    """她把杯子打破了 / She broke the cup."""
    zh, en, things = chance.deal(_SPOILT)
    who = somebody(chance)
    noun = chance.deal(things)
    thing = the(noun) if chance.odds(0.65) else definite(chance, noun)
    return build(
        f"{{who}} 把~thing~done {{thing}} {zh}#done 了~done",
        f"{{who}} {inflect(en, 'past')}#done {{thing}}",
        who=who.subject,
        thing=thing,
        name="ba_done",
    )


_GIVEN: tuple[tuple[str, str], ...] = (("还给", "return"), ("送给", "give"), ("寄给", "mail"))


def ba_give(chance: Chance) -> Unit:
    """我把书还给他了 / I returned the book to him."""
    who = somebody(chance)
    zh, en = chance.pick(_GIVEN)
    thing = the(chance.deal(_GIFTS))
    return build(
        f"{{who}} 把~thing~give {{thing}} {zh}#give~to {{whom}} 了~give",
        f"{{who}} {inflect(en, 'past')}#give {{thing}} to~to~whom {{whom}}",
        who=who.subject,
        thing=thing,
        whom=other(chance, who).object,
        name="ba_give",
    )


_GIFTS = nouns("book 雨伞 相机 钥匙 地图 照片 礼物 戒指 手表 画 词典 信 明信片 包裹 帽子 围巾 玩具")

_STOLEN: tuple[tuple[str, str, tuple[Noun, ...]], ...] = (
    ("偷走", "steal", nouns("钱包 手机 自行车 相机 电脑 手表 护照 汽车 摩托车 戒指 画 箱子")),
)
_HARMED: tuple[tuple[str, str, tuple[Noun, ...]], ...] = (
    ("打破", "break", nouns("杯子 盘子 碗 瓶子 镜子 窗户")),
    ("弄坏", "break", nouns("machine ridden 玩具 椅子 灯 手机 吉他")),
    ("吃完", "finish", nouns("baked 巧克力 冰淇淋 饺子")),
    ("借走", "borrow", nouns("book ridden 雨伞 相机 吉他 汽车 词典")),
    ("找到", "find", nouns("钱包 手机 钥匙 护照 戒指 狗 猫 手表")),
    ("买走", "buy", nouns("画 房子 汽车 钢琴 马")),
)
_TREATED: tuple[tuple[str, str], ...] = (
    ("表扬", "praise"),
    ("批评", "criticize"),
    ("邀请", "invite"),
    ("骗", "cheat"),
    ("原谅", "forgive"),
)


def bei(chance: Chance) -> Unit:
    """我的手机被小偷偷走了 / My cell phone was stolen by a thief."""
    draw = chance.below(100)
    if draw < 45:
        zh, en, things = chance.deal(_HARMED)
        thing = (
            definite(chance, chance.deal(things)) if chance.odds(0.6) else the(chance.deal(things))
        )
        agent = _agent(chance)
    elif draw < 60:
        zh, en, things = _STOLEN[0]
        thing = definite(chance, chance.deal(things))
        agent = build("小偷#who!", "a~who thief#who!")
    elif draw < 70:
        zh, en = "咬", "bite"
        thing = somebody(chance).subject
        agent = build("{animal}!", "a~animal {animal}!", animal=chance.deal(_BITING).one)
    else:
        zh, en = chance.deal(_TREATED)
        who = somebody(chance)
        thing, agent = who.subject, _agent(chance)
        while agent.zh == thing.zh:
            agent = _agent(chance)
    return build(
        f"{{thing}} 被#by {{agent}} {zh}#done 了~done~was",
        f"{{thing}} {be(thing.person, past=True)}~was~done {inflect(en, 'participle')}#done "
        "by#by {agent}",
        thing=thing,
        agent=agent,
        name="bei",
    )


def _agent(chance: Chance) -> Unit:
    """By whom something was done: a name, a relative or a role."""
    draw = chance.below(3)
    return chance.deal((NAMES, RELATIVES, ROLES)[draw]).object


_BITING = nouns("狗 猫 蛇 老鼠 猴子")

_RESULTS: tuple[tuple[str, str, str, tuple[Noun, ...]], ...] = (
    ("看", "完", "finished reading", nouns("book 信 文章 报纸 诗")),
    ("写", "完", "finished writing", nouns("信 小说 文章 诗 故事 作业")),
    ("画", "完", "finished drawing", nouns("地图 马 树 桥 flower")),
    ("翻译", "完", "finished translating", nouns("信 小说 文章 诗 故事")),
    ("洗", "完", "finished washing", nouns("tableware clothing 汽车")),
    ("吃", "完", "finished eating", nouns("baked snack fruit")),
)


def result(chance: Chance) -> Unit:
    """他看完了那本书 / He finished reading that book."""
    zh, end, en, things = chance.deal(_RESULTS)
    finish, verb = en.split()
    who = somebody(chance)
    # What is being written or drawn is nobody's yet.
    is_made = zh in {"写", "画"}
    which = this if is_made or not chance.odds(0.3) else definite
    return build(
        f"{{who}} {zh}#verb {end}#finish 了~finish {{thing}}",
        f"{{who}} {finish}#finish {verb}#verb {{thing}}",
        who=who.subject,
        thing=which(chance, chance.deal(things)),
        name="result",
    )


_POSSIBLE: tuple[tuple[str, str, str, tuple[Noun, ...]], ...] = (
    ("听", "懂", "understand", nouns("歌 故事 节目 language 京剧")),
    ("看", "懂", "understand", nouns("book 文章 信 诗 地图 电影 画")),
    ("找", "到", "find", nouns("carried 眼镜 手套 book pet 玩具")),
    ("吃", "完", "finish", nouns("baked snack dish 西瓜")),
    ("喝", "完", "finish", nouns("drink")),
    ("打", "开", "open", nouns("opening 盒子 箱子 书包 柜子 冰箱 瓶子")),
    ("搬", "动", "move", nouns("furniture 箱子 冰箱 洗衣机 钢琴")),
    ("买", "起", "afford", nouns("car 房子 钢琴 machine 手表 大衣 戒指")),
    ("看", "见", "see", nouns("landscape 鸟 船 飞机 蝴蝶 狼 熊")),
    ("做", "完", "finish", nouns("作业")),
)


def potential(chance: Chance) -> Unit:
    """我听不懂这首歌 / I cannot understand this song."""
    zh, end, en, things = chance.deal(_POSSIBLE)
    who = somebody(chance)
    able = end in {"懂", "见", "动", "起"} and chance.odds(0.4)
    middle, can = ("得#can", "can#can") if able else ("不#can", "cannot#can")
    noun = chance.deal(things)
    return build(
        f"{{who}} {zh}#verb {middle} {end}~verb~can {{thing}}",
        f"{{who}} {can} {en}#verb {{thing}}",
        who=who.subject,
        thing=noun.one if not noun.is_counted and not noun.portion else known(chance, noun),
        name="potential",
    )


# A Chinese verb, its English, and the manners that suit it.
_MANNERS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("跑", "run", (("快", "fast"), ("慢", "slowly"))),
    ("走", "walk", (("快", "fast"), ("慢", "slowly"))),
    ("游", "swim", (("快", "fast"), ("慢", "slowly"), ("好", "well"))),
    ("唱", "sing", (("好", "well"), ("大声", "loudly"))),
    ("跳", "dance", (("好", "well"), ("美", "beautifully"))),
    ("睡", "sleep", (("好", "well"), ("晚", "late"))),
    ("起", "get up", (("早", "early"), ("晚", "late"))),
    ("吃", "eat", (("快", "fast"), ("慢", "slowly"))),
    ("学", "learn", (("快", "fast"), ("慢", "slowly"))),
    ("工作", "work", (("努力", "hard"), ("认真", "carefully"))),
    ("学习", "study", (("努力", "hard"), ("认真", "carefully"))),
    ("写", "write", (("快", "fast"), ("慢", "slowly"), ("好", "well"), ("认真", "carefully"))),
)
_HOW = (("很", "very"), ("很", "very"), ("非常", "extremely"))


def manner(chance: Chance) -> Unit:
    """他跑得很快 / He runs very fast."""
    who = somebody(chance)
    zh, en, manners = chance.deal(_MANNERS)
    how, how_en = chance.pick(manners)
    very, very_en = chance.pick(_HOW)
    verb = agreeing(en, who.person).replace(" ", "#verb ")
    return build(
        f"{{who}} {zh}#verb 得~how {very}#very {{how}}",
        f"{{who}} {verb}#verb {very_en}#very {{how}}",
        who=who.subject,
        how=word(how, how_en),
        name="manner",
    )


_SKILLED: tuple[tuple[tuple[Noun, ...], str, str], ...] = (
    (KINDS["language"], "说", "speak"),
    (KINDS["language"], "说", "speak"),
    (KINDS["sport"], "打", "play"),
    (nouns("足球"), "踢", "play"),
    (nouns("钢琴 吉他"), "弹", "play the"),
    (nouns("小提琴"), "拉", "play the"),
    (nouns("饺子 蛋糕 沙拉 饼干 三明治 包子"), "做", "make"),
    (nouns("诗 小说 文章"), "写", "write"),
    (nouns("马 花 树 老虎 熊猫 鸟 山"), "画", "draw"),
)


def manner_of_object(chance: Chance) -> Unit:
    """他中文说得很好 / He speaks Chinese very well."""
    who = somebody(chance)
    things, zh, en = chance.deal(_SKILLED)
    noun = chance.deal(things)
    very, very_en = chance.pick(_HOW)
    verb, _, article = agreeing(en, who.person).partition(" ")
    how, how_en = ("好", "well") if zh != "说" else chance.pick(_WAYS)
    return build(
        f"{{who}} {{thing}} {zh}#verb 得~how {very}#very {{how}}",
        f"{{who}} {verb}#verb {article and article + '~thing'} {{thing}} {very_en}#very {{how}}",
        who=who.subject,
        thing=noun.one if article else noun.many,
        how=word(how, how_en),
        name="manner_of_object",
    )


_WAYS = (("好", "well"), ("好", "well"), ("慢", "slowly"), ("快", "fast"))
