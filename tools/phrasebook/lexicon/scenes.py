"""What people do where: a place, the activities that fit it, and what is done to things there."""

from tools.phrasebook.lexicon.nouns import Noun, nouns
from tools.phrasebook.lexicon.places import BY_ZH, Place
from tools.phrasebook.lexicon.verbs import ACTIONS, ACTIVITIES, DEEDS, Verb

_VERBS: dict[str, Verb] = {verb.zh: verb for verb in (*DEEDS, *ACTIONS, *ACTIVITIES)}

_TABLE = """
    图书馆 | 看书 学习 写作业 | 借 小说 词典 书
    公园 | 散步 跑步 拍照 画画 聊天 跳舞 唱歌 看书 下棋 骑自行车 锻炼 滑冰 | 喂 鸭子 鸟
    体育馆 | 锻炼 跑步 跳舞 游泳 | 打 sport
    海边 | 游泳 散步 拍照 钓鱼 跑步 画画 休息 骑马 |
    游泳池 | 游泳 |
    办公室 | 工作 开会 休息 | 写 文章 信
    公司 | 工作 开会 休息 | 写 文章
    学校 | 学习 上课 唱歌 踢足球 锻炼 跑步 跳舞 | 学习 subject
    教室 | 学习 写作业 上课 看书 画画 休息 | 学习 subject language
    厨房 | 做饭 洗碗 吃饭 | 做 蛋糕 沙拉 三明治
    客厅 | 看电视 聊天 弹钢琴 看书 下棋 休息 拉小提琴 弹吉他 | 喝 茶 咖啡
    卧室 | 睡觉 看书 休息 看电视 写作业 弹吉他 | 写 信 诗
    花园 | 画画 看书 散步 聊天 下棋 拍照 休息 | 种 flower vegetable
    院子里 | 下棋 跳舞 聊天 唱歌 休息 锻炼 | 种 flower 西红柿 黄瓜
    阳台 | 看书 聊天 休息 拍照 画画 弹吉他 | 喝 茶 果汁 咖啡
    宿舍 | 睡觉 学习 聊天 弹吉他 休息 写作业 看电视 |
    浴室 | 洗澡 洗衣服 | 洗 毛巾 袜子
    书房 | 看书 学习 工作 写作业 画画 拉小提琴 | 写 小说 信 诗
    咖啡馆 | 聊天 看书 学习 工作 休息 | 喝 咖啡 茶 果汁
    饭馆 | 吃饭 工作 聊天 | 吃 饺子 豆腐 牛肉 羊肉
    广场 | 跳舞 唱歌 散步 拍照 聊天 滑冰 | 卖 flower
    医院 | 工作 休息 |
    超市 | 购物 工作 | 买 fruit vegetable dish
    商店 | 购物 工作 | 买 clothing accessory
    书店 | 看书 工作 | 买 book 地图
    银行 | 工作 |
    邮局 | 工作 | 寄 包裹 信 明信片
    火车站 | 工作 拍照 | 买 票
    机场 | 工作 | 买 礼物
    宾馆 | 休息 睡觉 工作 |
    工厂 | 工作 |
    博物馆 | 工作 拍照 | 买 明信片 礼物
    动物园 | 工作 拍照 | 画 wild
    电影院 | 工作 |
    市场 | 工作 | 买 fruit vegetable flower ; 卖 fruit vegetable
    教堂 | 唱歌 |
    药店 | 工作 |
    实验室 | 工作 学习 |
    北京 | 工作 学习 上课 开会 | 学 中文 ; 学习 subject
    上海 | 工作 学习 购物 开会 | 学 中文
    巴黎 | 工作 学习 购物 拍照 | 学 法语
    伦敦 | 工作 学习 购物 开会 | 学 英语
    纽约 | 工作 学习 购物 开会 | 学 英语
    东京 | 工作 学习 购物 拍照 | 学 日语
    柏林 | 工作 学习 开会 | 学 德语
    莫斯科 | 工作 学习 滑冰 | 学 俄语
    广州 | 工作 学习 购物 |
    成都 | 工作 学习 休息 |
    香港 | 工作 购物 开会 |
    悉尼 | 工作 学习 游泳 |
    中国 | 工作 学习 拍照 爬山 骑自行车 | 学 中文 ; 教 英语
    美国 | 工作 学习 开车 | 教 中文 ; 学习 法律 医学 数学
    英国 | 工作 学习 | 教 中文 ; 学习 文学 历史
    法国 | 工作 学习 滑雪 | 学 法语 ; 学习 哲学
    德国 | 工作 学习 | 学 德语 ; 学习 物理 化学
    日本 | 工作 学习 滑雪 | 学 日语
    加拿大 | 工作 学习 滑雪 滑冰 钓鱼 | 教 英语
    意大利 | 学习 拍照 画画 |
    瑞士 | 滑雪 爬山 工作 |
    澳大利亚 | 工作 游泳 骑马 |
"""

# A thing done at a place: the verb, and the nouns it may be done to (none for an activity).
Deed = tuple[Verb, tuple[Noun, ...]]


Scene = tuple[Place, tuple[Deed, ...]]


def _deeds(text: str) -> list[Deed]:
    deeds: list[Deed] = []
    for part in text.split(";"):
        verb, _, objects = part.strip().partition(" ")
        if verb:
            deeds.append((_VERBS[verb], nouns(objects)))
    return deeds


def _read(line: str) -> Scene:
    zh, activities, deeds = (part.strip() for part in line.split("|"))
    simple: list[Deed] = [(_VERBS[verb], ()) for verb in activities.split()]
    return BY_ZH[zh], tuple(simple + _deeds(deeds))


SCENES: tuple[Scene, ...] = tuple(_read(line) for line in _TABLE.strip().splitlines())
