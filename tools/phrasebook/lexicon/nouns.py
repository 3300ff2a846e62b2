"""Nouns: what they are called, how they are counted, and the kinds other words ask for.

A line of a table is the Chinese word, its measure word and the English word. A noun with ``-`` for
a measure word is not counted (music); after ``=`` stands the measure of a portion and its English
(a cup of tea). ``双``, ``副`` and ``条`` with an English plural after ``+`` are pairs (a pair of
shoes).
"""

from dataclasses import dataclass

from tools.phrasebook.grammar import Unit, word
from tools.phrasebook.morphology import plural


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of both languages.

    Attributes:
        zh: The Chinese word.
        en: The English singular (of a pair, the plural).
        measure: The Chinese measure word; empty if the noun is not counted.
        is_pair: English counts it in pairs.
        portion: Of what is not counted: the measure of a portion and its English, such as 杯, cup.
        one: The singular, as a unit.
        many: The plural, as a unit; of what is not counted, the singular again.
    """

    zh: str
    en: str
    measure: str
    is_pair: bool
    portion: tuple[str, str] | None
    one: Unit
    many: Unit

    @property
    def is_counted(self) -> bool:
        """Whether it can be one, two or three of them."""
        return bool(self.measure)


def _noun(line: str) -> Noun:
    zh, measure, en = line.split(maxsplit=2)
    en, _, portion = (part.strip() for part in en.partition("="))
    if measure == "-":
        plain = word(zh, en)
        return Noun(zh, en, "", False, _portion(portion), plain, plain)
    if en.startswith("+"):
        pair = word(zh, en[1:], person="plural")
        return Noun(zh, en[1:], measure, True, None, pair, pair)
    many = word(zh, plural(en), person="plural")
    return Noun(zh, en, measure, False, None, word(zh, en), many)


def _portion(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    measure, en = text.split()
    return measure, en


_TABLES = {
    "role": """
        学生 个 student
        司机 个 driver
        警察 个 police officer
        护士 个 nurse
        演员 个 actor
        歌手 个 singer
        厨师 个 chef
        服务员 个 waiter
        农民 个 farmer
        工人 个 worker
        士兵 个 soldier
        秘书 个 secretary
        导游 个 tour guide
        运动员 个 athlete
        商人 个 businessman
        飞行员 个 pilot
        舞蹈家 位 dancer
        老师 位 teacher
        医生 位 doctor
        律师 位 lawyer
        工程师 位 engineer
        记者 位 reporter
        画家 位 painter
        作家 位 writer
        科学家 位 scientist
        经理 位 manager
        教授 位 professor
        校长 位 principal
    """,
    "person": """
        孩子 个 child
        女孩 个 girl
        男孩 个 boy
        女人 个 woman
        男人 个 man
        客人 位 guest
    """,
    "relative": """
        爸爸 个 father
        妈妈 个 mother
        哥哥 个 older brother
        弟弟 个 younger brother
        姐姐 个 older sister
        妹妹 个 younger sister
        爷爷 个 grandfather
        奶奶 个 grandmother
        叔叔 个 uncle
        阿姨 个 aunt
        儿子 个 son
        女儿 个 daughter
        朋友 个 friend
        同学 个 classmate
        同事 个 colleague
        邻居 个 neighbor
    """,
    "pet": """
        狗 只 dog
        猫 只 cat
        鸟 只 bird
        兔子 只 rabbit
    """,
    "farm": """
        马 匹 horse
        牛 头 cow
        羊 只 sheep
        猪 头 pig
        鸡 只 chicken
        鸭子 只 duck
    """,
    "wild": """
        老虎 只 tiger
        狮子 头 lion
        大象 头 elephant
        猴子 只 monkey
        熊猫 只 panda
        老鼠 只 mouse
        蛇 条 snake
        熊 头 bear
        狼 只 wolf
        蝴蝶 只 butterfly
        骆驼 头 camel
        长颈鹿 只 giraffe
    """,
    "fruit": """
        苹果 个 apple
        香蕉 根 banana
        橙子 个 orange
        西瓜 个 watermelon
        桃子 个 peach
        梨 个 pear
        草莓 个 strawberry
        芒果 个 mango
        柠檬 个 lemon
    """,
    "vegetable": """
        土豆 个 potato
        西红柿 个 tomato
        胡萝卜 根 carrot
        黄瓜 根 cucumber
        洋葱 个 onion
        蘑菇 个 mushroom
    """,
    "snack": """
        包子 个 steamed bun
        饺子 个 dumpling
        三明治 个 sandwich
        汉堡 个 hamburger
    """,
    "egg": """
        鸡蛋 个 egg
    """,
    "dish": """
        面包 - bread = 块 piece
        米饭 - rice = 碗 bowl
        牛肉 - beef = 块 piece
        猪肉 - pork = 块 piece
        羊肉 - lamb = 块 piece
        豆腐 - tofu = 块 piece
        沙拉 - salad = 盘 plate
        巧克力 - chocolate = 块 piece
        冰淇淋 - ice cream = 碗 bowl
        奶酪 - cheese = 块 piece
    """,
    "baked": """
        蛋糕 个 cake
        饼干 块 cookie
    """,
    "drink": """
        水 - water = 杯 glass
        茶 - tea = 杯 cup
        咖啡 - coffee = 杯 cup
        牛奶 - milk = 杯 glass
        果汁 - juice = 杯 glass
        啤酒 - beer = 瓶 bottle
        葡萄酒 - wine = 瓶 bottle
        可乐 - cola = 瓶 bottle
        豆浆 - soy milk = 碗 bowl
    """,
    "book": """
        书 本 book
        小说 本 novel
        杂志 本 magazine
        词典 本 dictionary
    """,
    "text": """
        报纸 份 newspaper
        信 封 letter
        文章 篇 article
        诗 首 poem
        故事 个 story
        日记 篇 diary
    """,
    "show": """
        电影 部 movie
        节目 个 program
        比赛 场 game
        电视剧 部 TV series
    """,
    "art": """
        歌 首 song
        画 幅 painting
        照片 张 photo
    """,
    "clothing": """
        衬衫 件 shirt
        毛衣 件 sweater
        大衣 件 coat
        夹克 件 jacket
        裙子 条 skirt
        裤子 条 +pants
        鞋 双 +shoes
        袜子 双 +socks
    """,
    "accessory": """
        帽子 顶 hat
        手套 副 +gloves
        眼镜 副 +glasses
        围巾 条 scarf
        手表 块 watch
        领带 条 tie
        戒指 枚 ring
    """,
    "furniture": """
        桌子 张 table
        椅子 把 chair
        床 张 bed
        沙发 张 sofa
        柜子 个 cupboard
        书架 个 bookshelf
    """,
    "machine": """
        电脑 台 computer
        冰箱 台 refrigerator
        洗衣机 台 washing machine
        相机 台 camera
        空调 台 air conditioner
    """,
    "opening": """
        门 扇 door
        窗户 扇 window
    """,
    "tableware": """
        杯子 个 cup
        盘子 个 plate
        碗 个 bowl
        瓶子 个 bottle
        刀 把 knife
        叉子 把 fork
        勺子 把 spoon
    """,
    "container": """
        盒子 个 box
        箱子 个 suitcase
        书包 个 schoolbag
        篮子 个 basket
        袋子 个 bag
    """,
    "carried": """
        手机 部 cell phone
        钥匙 把 key
        雨伞 把 umbrella
        钱包 个 wallet
        护照 本 passport
        笔 支 pen
        铅笔 支 pencil
        本子 个 notebook
        地图 张 map
        票 张 ticket
        礼物 份 gift
        明信片 张 postcard
        邮票 张 stamp
        名片 张 business card
    """,
    "household": """
        毛巾 条 towel
        牙刷 支 toothbrush
        镜子 面 mirror
        枕头 个 pillow
        毯子 条 blanket
        钟 个 clock
        灯 盏 lamp
        玩具 个 toy
        包裹 个 package
    """,
    "flower": """
        花 朵 flower
        玫瑰 朵 rose
    """,
    "instrument": """
        钢琴 架 piano
        吉他 把 guitar
        小提琴 把 violin
    """,
    "car": """
        汽车 辆 car
        公共汽车 辆 bus
        出租车 辆 taxi
        卡车 辆 truck
    """,
    "ridden": """
        自行车 辆 bicycle
        摩托车 辆 motorcycle
    """,
    "vessel": """
        火车 列 train
        飞机 架 plane
        船 条 boat
    """,
    "landscape": """
        树 棵 tree
        山 座 mountain
        河 条 river
        湖 个 lake
        桥 座 bridge
        路 条 road
        房子 座 house
    """,
    "subject": """
        数学 - math
        历史 - history
        物理 - physics
        化学 - chemistry
        生物 - biology
        地理 - geography
        文学 - literature
        法律 - law
        医学 - medicine
        经济学 - economics
        哲学 - philosophy
    """,
    "language": """
        中文 - Chinese
        英语 - English
        法语 - French
        德语 - German
        日语 - Japanese
        韩语 - Korean
        俄语 - Russian
        西班牙语 - Spanish
        意大利语 - Italian
        阿拉伯语 - Arabic
    """,
    "sport": """
        篮球 - basketball
        网球 - tennis
        排球 - volleyball
        乒乓球 - table tennis
        羽毛球 - badminton
        棒球 - baseball
    """,
    "taste": """
        音乐 - music
        艺术 - art
        京剧 - Beijing opera
        足球 - soccer
        象棋 - chess
    """,
    "event": """
        会议 个 meeting
        婚礼 场 wedding
        音乐会 场 concert
        晚会 个 party
    """,
    "wall": """
        墙 面 wall
    """,
    "matter": """
        问题 个 question
        计划 个 plan
        办法 个 method
        作业 - homework
    """,
}

KINDS: dict[str, tuple[Noun, ...]] = {
    kind: tuple(_noun(line) for line in table.strip().splitlines())
    for kind, table in _TABLES.items()
}

# Big things come in ones, twos and threes.
BIG = frozenset(
    noun.zh
    for kind in ("machine", "furniture", "car", "ridden", "vessel", "instrument", "opening", "wall")
    for noun in KINDS[kind]
) | {"房子", "桥", "山", "湖", "河", "路"}
# What Chinese leaves bare for several known ones: 苹果 / the apples.
BULK = frozenset(
    noun.zh for kind in ("fruit", "vegetable", "snack", "egg") for noun in KINDS[kind]
) | {
    "饼干",
    "邮票",
}

NOUNS: dict[str, Noun] = {noun.zh: noun for nouns in KINDS.values() for noun in nouns}


def nouns(wanted: str) -> tuple[Noun, ...]:
    """The nouns of some kinds, with single nouns by their Chinese name.

    Example:
        >>> [noun.en for noun in nouns("flower 树")]
        ['flower', 'rose', 'tree']
    """
    found: list[Noun] = []
    for name in wanted.split():
        found += KINDS[name] if name in KINDS else (NOUNS[name],)
    return tuple(found)
