"""把, 被 and what comes after the verb."""

from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.lexicon.nouns import Noun, nouns
from regard.text.phrasebook.noun_phrases import somebody, the

_SURFACES = nouns("桌子 椅子 床 沙发 书架")
_INSIDES = nouns("箱子 书包 盒子 袋子 柜子 冰箱 篮子")
_PLACEABLE = nouns("carried book 眼镜 帽子 手表")


def locus(chance: Chance) -> Unit:
    """桌子上 / on the table: its head is where 上 and "on" stand."""
    if chance.odds(0.6):
        noun, zh, en = chance.pick(_SURFACES), "上", "on"
    else:
        noun, zh, en = chance.pick(_INSIDES), "里", "in"
    return build(f"{{noun}} {zh}#at!", f"{en}#at! the~noun {{noun}}", noun=noun.one)


def ba_put(chance: Chance) -> Unit:
    """他把书放在桌子上了 / He put the book on the table."""
    return build("{who} 把~thing {thing} 放#put 在~where {where} 了~put",
                 "{who} put#put {thing} {where}", who=somebody(chance).subject,
                 thing=the(chance.pick(_PLACEABLE)), where=locus(chance), name="ba_put")


_SPOILT: tuple[tuple[str, str, tuple[Noun, ...]], ...] = (
    ("打破", "broke", nouns("杯子 盘子 碗 瓶子 镜子 窗户")),
    ("弄丢", "lost", nouns("carried 眼镜 手表")),
    ("弄坏", "broke", nouns("machine 钟 玩具 椅子")),
    ("吃完", "finished", nouns("蛋糕 巧克力 饺子")),
    ("偷走", "stole", nouns("钱包 手机 自行车 相机")),
)


def ba_done(chance: Chance) -> Unit:
    """她把杯子打破了 / She broke the cup."""
    zh, en, things = chance.pick(_SPOILT)
    return build(f"{{who}} 把~thing {{thing}} {zh}#done 了~done", f"{{who}} {en}#done {{thing}}",
                 who=somebody(chance).subject, thing=the(chance.pick(things)), name="ba_done")
