"""Verbs, with the objects that go with them.

A line of a table is the Chinese verb, the English one, its objects (kinds or single nouns), and
how an object that it is done to once is told apart: ``a`` one of them, ``n`` several, ``t`` this or
that, ``o`` somebody's own.
"""

from dataclasses import dataclass

from tools.phrasebook.grammar import Unit, word
from tools.phrasebook.lexicon.nouns import Noun, nouns
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.morphology import Form, inflect

_FORMS: tuple[Form, ...] = ("base", "third", "past", "participle", "ing")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of both languages, in all its English forms.

    Attributes:
        zh: The Chinese word.
        en: The English base form.
        forms: The verb as a unit, by English form.
        objects: The nouns it can be done to; none if it takes no object.
        manners: How one object of it is told apart, in letters.
    """

    zh: str
    en: str
    forms: dict[Form, Unit]
    objects: tuple[Noun, ...]
    manners: str


def _verb(line: str) -> Verb:
    zh, en, objects, manners = (part.strip() for part in f"{line}|||".split("|")[:4])
    forms = {form: word(zh, inflect(en, form)) for form in _FORMS}
    return Verb(zh, en, forms, nouns(objects), manners or "at")


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(_verb(line) for line in table.strip().splitlines())


# Lasting: in the simple present without any word for time, and never with 正在 or 了.
LIKINGS = _verbs("""
    喜欢 | like | pet farm fruit vegetable snack egg dish baked flower subject sport taste \
    茶 咖啡 牛奶 果汁 葡萄酒 可乐 豆浆
    爱 | love | taste sport 茶 咖啡 牛奶 果汁 葡萄酒 可乐 豆浆 baked dish pet flower
    讨厌 | hate | 老鼠 蛇 vegetable 啤酒 猪肉 羊肉 奶酪 数学 物理 化学 作业 狼
""")
WANTS = _verbs("""
    需要 | need | carried machine household 汽车 自行车 大衣 手套 眼镜 drink furniture | a
    想要 | want | carried household machine accessory clothing ridden instrument drink 狗 猫 | a
    有 | have | carried accessory clothing book ridden car instrument pet machine furniture | an
""")

# States towards people.
FEELINGS = _verbs("""
    爱 | love
    喜欢 | like
    想念 | miss
    相信 | trust
    认识 | know
    讨厌 | hate
    羡慕 | envy
    尊敬 | respect
    关心 | care about
    理解 | understand
    支持 | support
    佩服 | admire
""")

# Done again and again to things of a kind.
ACTIONS = _verbs("""
    吃 | eat | fruit vegetable snack egg dish baked
    喝 | drink | drink
    看 | read | 小说 杂志 报纸
    看 | watch | show
    听 | listen to | 音乐 歌 故事 京剧
    买 | buy | fruit vegetable egg dish baked drink flower
    卖 | sell | fruit vegetable egg drink clothing flower book
    写 | write | 信 小说 文章 诗 故事
    画 | draw | flower wild farm 树 地图
    学 | learn | language 网球 象棋
    学习 | study | subject language
    教 | teach | subject language
    修 | repair | machine ridden 汽车 卡车 钟
    做 | make | baked snack 玩具 沙拉
    打 | play | sport
    喂 | feed | pet farm
    种 | grow | fruit vegetable flower
    收集 | collect | 邮票 明信片 玩具 地图 照片
    翻译 | translate | 文章 信 小说 诗 故事
""")

# Done once, on purpose, to a particular thing.
DEEDS = _verbs("""
    找 | look for | carried pet 眼镜 手套 玩具 | to
    借 | borrow | book 雨伞 自行车 相机 汽车 | ato
    寄 | mail | 信 包裹 明信片 礼物 | ant
    带 | bring | 雨伞 地图 礼物 词典 相机 篮子 牙刷 毛巾 | a
    打开 | open | opening 盒子 箱子 书包 袋子 包裹 柜子 | to
    搬 | move | furniture 箱子 冰箱 洗衣机 钢琴 | t
    卖 | sell | 汽车 自行车 房子 相机 钢琴 电脑 | to
    买 | buy | machine clothing accessory carried book household ridden instrument furniture | ant
    买 | buy | fruit vegetable snack egg baked dish drink flower | an
    吃 | eat | fruit snack egg baked dish | an
    喝 | drink | drink | a
    看 | read | book 信 文章 报纸 诗 日记 | at
    看 | watch | 电影 比赛 节目 | at
    听 | listen to | 歌 故事 | at
    写 | write | 信 文章 诗 故事 | an
    画 | draw | flower wild farm 树 桥 地图 | an
    修 | repair | machine ridden car 钟 椅子 灯 opening | to
    洗 | wash | clothing 盘子 杯子 汽车 毛巾 窗户 | to
    做 | make | 蛋糕 三明治 汉堡 沙拉 玩具 | a
    选 | choose | clothing accessory 书 礼物 电影 歌 相机 | at
    藏 | hide | 礼物 钥匙 日记 信 戒指 照片 | to
    用 | use | 电脑 手机 词典 相机 雨伞 毛巾 | to
    参加 | attend | event | at
    翻译 | translate | 文章 信 小说 诗 故事 | at
    检查 | check | 作业 护照 票 箱子 自行车 | to
    种 | plant | flower 树 | an
""")

# Befallen.
ACCIDENTS = _verbs("""
    丢 | lose | carried 手表 手套 书包 戒指 | ao
    收到 | receive | 信 礼物 明信片 包裹 花 票 | ant
    找到 | find | carried pet 眼镜 手套 戒指 | to
    忘记 | forget | 问题 计划 办法 故事 | t
    看见 | see | wild landscape pet farm 蝴蝶 | an
""")

# Done to people.
DEALINGS = _verbs("""
    帮助 | help
    等 | wait for
    问 | ask
    找 | look for
    看望 | visit
    邀请 | invite
    照顾 | take care of
    表扬 | praise
    批评 | criticize
    感谢 | thank
    原谅 | forgive
""")

# Without an object in English, or with one that never changes.
LEISURE = _verbs("""
    游泳 | swim
    跑步 | run
    跳舞 | dance
    唱歌 | sing
    散步 | take a walk
    聊天 | chat
    爬山 | climb mountains
    拍照 | take photos
    钓鱼 | fish
    滑雪 | ski
    滑冰 | skate
    看书 | read
    购物 | shop
    画画 | paint
    看电视 | watch TV
    骑马 | ride horses
    骑自行车 | ride a bicycle
    弹钢琴 | play the piano
    弹吉他 | play the guitar
    拉小提琴 | play the violin
    下棋 | play chess
    踢足球 | play soccer
    旅行 | travel
""")
DUTIES = _verbs("""
    睡觉 | sleep
    工作 | work
    休息 | rest
    做饭 | cook
    洗澡 | take a shower
    锻炼 | exercise
    写作业 | do homework
    开会 | have a meeting
    上课 | have class
    学习 | study
    吃饭 | eat
    开车 | drive
    打扫房间 | clean the room
    洗衣服 | do the laundry
    洗碗 | wash the dishes
""")
ACTIVITIES = (*LEISURE, *DUTIES)

# What a day is made of.
DAILY = _verbs("""
    起床 | get up
    回家 | go home
    上班 | go to work
    下班 | get off work
    出门 | go out
    吃早饭 | eat breakfast
    吃午饭 | eat lunch
    吃晚饭 | eat dinner
""")
GO_TO_BED = _verb("睡觉 | go to bed")
# What happens once in a while.
MILESTONES = _verbs("""
    结婚 | get married
    毕业 | graduate
    退休 | retire
    搬家 | move
""")
OUTBURSTS = _verbs("""
    哭 | cry
    笑 | laugh
    迟到 | be late
""")

SPEAK = _verb("说 | speak | language")
SKILLS = select(
    ACTIVITIES,
    "游泳 跳舞 唱歌 做饭 滑雪 滑冰 骑马 骑自行车 开车 弹钢琴 弹吉他 拉小提琴 下棋 踢足球 画画",
)
