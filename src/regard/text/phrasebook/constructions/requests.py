"""Asking for something: 请, 别, 吧."""

from regard.text.phrasebook.acts import dealing, known_deed, leisure, scene
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions.particles import placing
from regard.text.phrasebook.constructions.settings import building, land
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.lexicon.nouns import KINDS, nouns
from regard.text.phrasebook.lexicon.people import PRONOUNS
from regard.text.phrasebook.lexicon.times import FUTURE
from regard.text.phrasebook.noun_phrases import OWNERS, certain, definite, owned, the

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
            "请#please 把~thing {thing} 放#put 在~where {where}",
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
        act=known_deed(chance).form("base"),
        name="please",
    )


_ORDERS = (
    ("关上#verb", "close#verb", nouns("opening container 柜子 冰箱")),
    ("打开#verb", "open#verb", nouns("opening container 柜子 冰箱 包裹")),
    ("修好#verb", "fix#verb", nouns("machine ridden car 钟 灯 椅子 门")),
    ("洗干净#verb", "wash#verb", nouns("tableware clothing 毛巾")),
)
_HELPED = (_ME, PRONOUNS[2], PRONOUNS[3], PRONOUNS[4], PRONOUNS[5])
_ASKED_FOR = nouns("drink fruit snack dish tableware 毛巾 笔 铅笔 票 书 杂志 毯子 枕头 地图")


def do_not(chance: Chance) -> Unit:
    """别在图书馆唱歌 / Do not sing in the library; 别忘了带雨伞 / Do not forget to bring ..."""
    draw = chance.below(100)
    if draw < 35:
        doing, where = scene(chance, single=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    elif draw < 70:
        act = build(
            "忘#forget 了~forget {act}",
            "forget#forget to~act {act}",
            act=known_deed(chance).form("base"),
        )
    else:
        things = _keepsake(chance)
        act = build("把~thing {thing} 弄丢#lose 了~lose", "lose#lose {thing}", thing=things)
    return build("别#not~do {act}", "do~do not#not {act}", act=act, name="do_not")


def _keepsake(chance: Chance) -> Unit:
    """Something one should not lose: 我的钥匙."""
    noun = chance.deal(KINDS["carried"])
    return the(noun) if chance.odds(0.3) else owned(chance.deal(OWNERS), noun)


def let_us(chance: Chance) -> Unit:
    """我们明天去公园吧 / Let's go to the park tomorrow."""
    draw = chance.below(100)
    if draw < 35:
        place = building(chance) if chance.odds(0.6) else land(chance)
        act = build("去#go {place}", "go#go to~go~place {place}", place=place)
    elif draw < 60:
        doing, where = scene(chance, single=True)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    elif draw < 80:
        act = leisure(chance).form("base")
    else:
        act = dealing(chance, PRONOUNS[4]).form("base")
    time = chance.deal(FUTURE)
    if chance.odds(0.6):
        return build(
            "我们#us {time} {act} 吧~us",
            "let's#us {act} {time}",
            time=time,
            act=act,
            name="let_us",
        )
    return build("我们#us {act} 吧~us", "let's#us {act}", act=act, name="let_us")
