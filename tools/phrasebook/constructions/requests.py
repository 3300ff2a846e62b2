"""Asking for something: 请, 别, 吧."""

from tools.phrasebook.acts import Act, favor, leisure, scene
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.particles import placing
from tools.phrasebook.constructions.settings import TRAVEL_FUTURE
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import to_building, to_land
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.people import PRONOUNS
from tools.phrasebook.lexicon.places import BY_ZH, Place
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import FUTURE
from tools.phrasebook.lexicon.verbs import ACTIVITIES, DEALINGS, Verb
from tools.phrasebook.noun_phrases import OWNERS, at, certain, definite, other, owned, the

_ME = PRONOUNS[0]


def please(chance: Chance) -> Unit:
    """请把门关上 / Please close the door; 请给我一杯水 / Please give me a glass of water."""
    draw = chance.below(100)
    if draw < 35:
        zh, en, things = chance.deal(_ORDERS)
        noun = chance.deal(things)
        thing = the(noun) if chance.odds(0.5) else definite(chance, noun)
        return build(
            f"请#please 把~thing {{thing}} {zh}",
            f"please#please {en} {{thing}}",
            thing=thing,
            name="please",
        )
    if draw < 60:
        noun, where = placing(chance)
        thing = the(noun) if chance.odds(0.5) else definite(chance, noun)
        return build(
            "请#please 把~thing~put {thing} 放#put 在~where {where}",
            "please#please put#put {thing} {where}",
            thing=thing,
            where=where,
            name="please",
        )
    if draw < 80:
        return build(
            "请#please 给#give {whom} {thing}",
            "please#please give#give {whom} {thing}",
            whom=chance.deal(_HELPED).object,
            thing=certain(chance, chance.deal(_ASKED_FOR), "aan"),
            name="please",
        )
    return build(
        "请#please 帮#help {whom} {act}",
        "please#please help#help {whom} {act}",
        whom=chance.deal(_HELPED).object,
        act=favor(chance).form("base"),
        name="please",
    )


_ORDERS = (
    ("关上#verb", "close#verb", nouns("opening 盒子 箱子 书包 柜子 冰箱")),
    ("打开#verb", "open#verb", nouns("opening 盒子 箱子 书包 柜子 冰箱 包裹")),
    ("修好#verb", "fix#verb", nouns("machine ridden 钟 灯 椅子 门")),
    ("洗干净#verb", "wash#verb", nouns("tableware clothing 毛巾")),
)
_HELPED = (_ME, PRONOUNS[2], PRONOUNS[3], PRONOUNS[4], PRONOUNS[5])
_ASKED_FOR = nouns("drink fruit snack dish tableware 毛巾 笔 铅笔 票 书 杂志 毯子 枕头 地图")


def do_not(chance: Chance) -> Unit:
    """别在图书馆唱歌 / Do not sing in the library; 别忘了带雨伞 / Do not forget to bring ..."""
    draw = chance.below(100)
    if draw < 40:
        place, verbs = chance.deal(_FORBIDDEN)
        verb = chance.deal(verbs)
        act = build("{where} {act}", "{act} {where}", where=at(place), act=verb.forms["base"])
    elif draw < 70:
        act = build(
            "忘#forget 了~forget {act}",
            "forget#forget to~act {act}",
            act=favor(chance).form("base"),
        )
    else:
        things = _keepsake(chance)
        act = build("把~thing~lose {thing} 弄丢#lose 了~lose", "lose#lose {thing}", thing=things)
    return build("别#not~do {act}", "do~do not#not {act}", act=act, name="do_not")


_FORBIDDEN_TABLE = """
    图书馆 唱歌 聊天 睡觉 吃饭 跑步 跳舞 拍照
    教室 睡觉 吃饭 跳舞 唱歌 下棋 聊天
    医院 跑步 唱歌 拍照 跳舞 踢足球
    博物馆 拍照 跑步 唱歌 吃饭 聊天
    办公室 睡觉 唱歌 下棋 跳舞 洗衣服 弹吉他
    厨房 跑步 睡觉 画画 写作业 踢足球
    公园 钓鱼 骑马 骑自行车 踢足球 开车 游泳
    教堂 拍照 吃饭 跑步 聊天
    游泳池 跑步 吃饭 洗衣服
    电影院 聊天 拍照 睡觉 唱歌
    广场 骑自行车 踢足球 开车 睡觉
    银行 拍照 睡觉 唱歌
    花园 踢足球 骑自行车 跑步
    实验室 吃饭 睡觉 跳舞 拍照
    宿舍 做饭 跳舞 踢足球 拉小提琴
    卧室 吃饭 踢足球 洗衣服 写作业
"""


def _forbidden() -> tuple[tuple[Place, tuple[Verb, ...]], ...]:
    """Where one should not do what."""
    rows = (line.split(maxsplit=1) for line in _FORBIDDEN_TABLE.strip().splitlines())
    return tuple((BY_ZH[zh], select(ACTIVITIES, names)) for zh, names in rows)


_FORBIDDEN = _forbidden()


def _keepsake(chance: Chance) -> Unit:
    """Something one should not lose: 我的钥匙."""
    noun = chance.deal(KINDS["carried"])
    return the(noun) if chance.odds(0.3) else owned(chance.deal(OWNERS), noun)


def let_us(chance: Chance) -> Unit:
    """我们明天去公园吧 / Let's go to the park tomorrow."""
    draw = chance.below(100)
    time = chance.deal(FUTURE)
    if draw < 20:
        time = chance.deal(TRAVEL_FUTURE)
        act = build("去#go {place}", "go#go {place}", place=to_land(chance))
    elif draw < 45:
        act = build("去#go {place}", "go#go {place}", place=to_building(chance))
    elif draw < 65:
        doing, where = scene(chance, single=True, abroad=False)
        while doing.verb.zh in {"工作", "睡觉", "卖"}:
            doing, where = scene(chance, single=True, abroad=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    elif draw < 85:
        act = leisure(chance).form("base")
    else:
        verb = chance.deal(_KINDNESSES)
        act = Act(verb, other(chance, PRONOUNS[4]).object).form("base")
    if chance.odds(0.6):
        return build(
            "我们#us {time} {act} 吧~us",
            "let's#us {act} {time}",
            time=time,
            act=act,
            name="let_us",
        )
    return build("我们#us {act} 吧~us", "let's#us {act}", act=act, name="let_us")


_KINDNESSES = select(DEALINGS, "帮助 等 问 看望 邀请 感谢 找")
