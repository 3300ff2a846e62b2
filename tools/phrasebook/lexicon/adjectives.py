"""Adjectives, with what they can be said of."""

from dataclasses import dataclass

from tools.phrasebook.grammar import Unit, word
from tools.phrasebook.lexicon.nouns import Noun, nouns
from tools.phrasebook.lexicon.places import BUILDINGS, Place
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.morphology import comparative, superlative


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective of both languages.

    Attributes:
        zh: The Chinese word.
        en: The English word.
        plain: It as a unit: tall.
        more: Its comparative: taller.
        most: Its superlative: tallest.
        things: The nouns it can be said of; none for adjectives of people.
    """

    zh: str
    en: str
    plain: Unit
    more: Unit
    most: Unit
    things: tuple[Noun, ...]


def _adjective(line: str) -> Adjective:
    zh, en, things = (part.strip() for part in f"{line}|".split("|")[:3])
    more, most = word(zh, comparative(en)), word(zh, superlative(en))
    return Adjective(zh, en, word(zh, en), more, most, nouns(things))


def _adjectives(table: str) -> tuple[Adjective, ...]:
    return tuple(_adjective(line) for line in table.strip().splitlines())


# What a person is like, for years.
TRAITS = _adjectives("""
    高 | tall
    矮 | short
    胖 | fat
    瘦 | thin
    聪明 | smart
    年轻 | young
    善良 | kind
    友好 | friendly
    努力 | hardworking
    懒 | lazy
    有名 | famous
    健康 | healthy
    强壮 | strong
    有钱 | rich
    穷 | poor
    勇敢 | brave
    诚实 | honest
    幽默 | funny
    可爱 | cute
    害羞 | shy
    细心 | careful
    有耐心 | patient
    有礼貌 | polite
""")

# How a person is now.
MOODS = _adjectives("""
    忙 | busy
    累 | tired
    高兴 | happy
    难过 | sad
    生气 | angry
    紧张 | nervous
    饿 | hungry
    渴 | thirsty
    困 | sleepy
    激动 | excited
    失望 | disappointed
    满意 | satisfied
    孤独 | lonely
    担心 | worried
""")

QUALITIES = _adjectives("""
    大 | big | fruit wild container furniture landscape 狗 鸡蛋 钟 镜子 蛋糕
    小 | small | pet container furniture household landscape 书包 蛋糕
    新 | new | machine clothing accessory car ridden carried book furniture 房子 桥
    旧 | old | machine clothing car ridden furniture book 房子 桥 照片 钢琴
    贵 | expensive | machine clothing accessory car instrument fruit 票 葡萄酒 牛肉
    便宜 | cheap | clothing accessory machine fruit vegetable 票
    长 | long | 路 河 裙子 围巾 裤子 领带 信 文章 电影 桥
    短 | short | 裙子 裤子 围巾 故事 信 文章 诗
    重 | heavy | container furniture 包裹 词典 冰箱 洗衣机
    轻 | light | 箱子 书包 盒子 电脑 自行车 相机
    厚 | thick | book 毛衣 毯子 大衣
    薄 | thin | book 本子 毯子
    干净 | clean | clothing tableware 毛巾 毯子 窗户 河 湖
    脏 | dirty | clothing tableware 毛巾 毯子 窗户 汽车 河
    有用 | useful | 办法 词典 地图 电脑 手机 书 雨伞 计划
    有意思 | interesting | book show 故事 文章 节目 计划 历史
    重要 | important | event 信 计划 文章 问题
    难 | difficult | subject language 问题 作业
    容易 | easy | 问题 作业 歌
    复杂 | complicated | 办法 问题 计划 故事
    简单 | simple | 办法 问题 计划 故事
    好吃 | delicious | fruit snack dish baked
    好喝 | tasty | drink
    甜 | sweet | fruit baked 可乐 果汁
    酸 | sour | 柠檬 橙子 草莓 葡萄酒
    新鲜 | fresh | fruit vegetable 牛奶 牛肉 鸡蛋 面包 花
    热 | hot | 茶 咖啡 水 牛奶 面包 豆浆
    漂亮 | beautiful | flower clothing accessory 房子 画 照片 蝴蝶 山 湖 马 鸟
    快 | fast | car ridden vessel 马 电脑
    舒服 | comfortable | clothing 床 沙发 椅子 枕头 房子
    安全 | safe | 办法 汽车 飞机 火车 船 桥 路
    危险 | dangerous | wild 路 河
    著名 | well-known | 歌 画 电影 小说 山 桥
    可怕 | scary | 老虎 蛇 狼 熊 狮子 故事
""")

# Said of places; what follows is where in a town it fits.
PLACE_QUALITIES = _adjectives("""
    安静 | quiet
    热闹 | lively
    美丽 | lovely
    现代 | modern
    古老 | ancient
    吵 | noisy
    拥挤 | crowded
    方便 | convenient
""")
_FITTING = {
    "安静": "图书馆 医院 公园 咖啡馆 宾馆 办公室 博物馆 教堂 海边 书店 实验室 学校",
    "热闹": "市场 广场 公园 超市 饭馆 咖啡馆 火车站 动物园 海边",
    "美丽": "公园 海边 教堂 广场 博物馆 动物园",
    "现代": "机场 火车站 图书馆 医院 办公室 宾馆 体育馆 电影院 实验室 工厂 学校",
    "古老": "教堂 图书馆 博物馆 广场 学校 邮局",
    "吵": "火车站 市场 机场 工厂 饭馆 办公室 宾馆 咖啡馆 广场",
    "拥挤": "火车站 机场 超市 市场 医院 电影院 动物园 公园 体育馆 游泳池 银行",
}
PLACES_RATED: tuple[tuple[Adjective, Place], ...] = tuple(
    (adjective, place)
    for adjective in PLACE_QUALITIES
    for place in select(BUILDINGS, _FITTING.get(adjective.zh, ""))
)

COLORS = _adjectives("""
    红色 | red
    白色 | white
    黑色 | black
    蓝色 | blue
    绿色 | green
    黄色 | yellow
    灰色 | gray
    棕色 | brown
    紫色 | purple
    粉色 | pink
""")
