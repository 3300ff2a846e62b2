"""Places: buildings and rooms one goes to, countries and cities."""

from dataclasses import dataclass

from tools.phrasebook.grammar import Unit, word
from tools.phrasebook.lexicon.selection import select


@dataclass(frozen=True, slots=True)
class Place:
    """A place of both languages.

    Attributes:
        zh: The Chinese word.
        en: The English word without an article.
        preposition: What English says for being there: in or at.
        has_article: Whether English says "the" before it.
        is_land: Whether it is a country or a city.
        bare: The word without an article, as a unit.
    """

    zh: str
    en: str
    preposition: str
    has_article: bool
    is_land: bool
    bare: Unit


def _place(line: str, *, is_land: bool) -> Place:
    zh, preposition, en = line.split(maxsplit=2)
    has_article = en.startswith("the ")
    en = en.removeprefix("the ")
    return Place(zh, en, preposition, has_article, is_land, word(zh, en))


def _places(table: str, *, is_land: bool = False) -> tuple[Place, ...]:
    return tuple(_place(line, is_land=is_land) for line in table.strip().splitlines())


BUILDINGS = _places("""
    学校 at school
    图书馆 in the library
    医院 at the hospital
    超市 at the supermarket
    商店 at the store
    书店 at the bookstore
    饭馆 at the restaurant
    咖啡馆 in the cafe
    银行 at the bank
    邮局 at the post office
    火车站 at the train station
    机场 at the airport
    宾馆 at the hotel
    办公室 in the office
    公司 at the company
    工厂 at the factory
    博物馆 at the museum
    电影院 at the movie theater
    动物园 at the zoo
    体育馆 at the gym
    市场 at the market
    教堂 in the church
    公园 in the park
    海边 at the beach
    广场 in the square
    游泳池 in the swimming pool
    药店 at the pharmacy
    实验室 in the laboratory
""")

ROOMS = _places("""
    厨房 in the kitchen
    客厅 in the living room
    卧室 in the bedroom
    浴室 in the bathroom
    教室 in the classroom
    花园 in the garden
    院子里 in the yard
    阳台 on the balcony
    宿舍 in the dormitory
    书房 in the study
""")

COUNTRIES = _places(
    """
    中国 in China
    美国 in America
    英国 in England
    法国 in France
    德国 in Germany
    日本 in Japan
    韩国 in South Korea
    俄罗斯 in Russia
    意大利 in Italy
    西班牙 in Spain
    加拿大 in Canada
    澳大利亚 in Australia
    印度 in India
    巴西 in Brazil
    泰国 in Thailand
    埃及 in Egypt
    墨西哥 in Mexico
    瑞士 in Switzerland
    希腊 in Greece
    新西兰 in New Zealand
""",
    is_land=True,
)

CITIES = _places(
    """
    北京 in Beijing
    上海 in Shanghai
    广州 in Guangzhou
    成都 in Chengdu
    南京 in Nanjing
    香港 in Hong Kong
    巴黎 in Paris
    伦敦 in London
    纽约 in New York
    东京 in Tokyo
    柏林 in Berlin
    罗马 in Rome
    莫斯科 in Moscow
    悉尼 in Sydney
    曼谷 in Bangkok
    波士顿 in Boston
""",
    is_land=True,
)

BY_ZH: dict[str, Place] = {place.zh: place for place in (*BUILDINGS, *ROOMS, *COUNTRIES, *CITIES)}
LANDS: tuple[Place, ...] = (*COUNTRIES, *CITIES)
# Where work, errands and sights take people.
COMMUTES = select(
    BUILDINGS,
    "学校 图书馆 医院 超市 银行 办公室 公司 工厂 博物馆 体育馆 市场 公园 海边 动物园 书店 实验室",
)
