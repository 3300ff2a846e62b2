"""Reason, concession and condition: 因为…所以, 虽然…但是, 如果…就, 只要…就."""

from tools.phrasebook.acts import Act, leisure
from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import to_building, to_commute, to_land
from tools.phrasebook.lexicon.adjectives import MOODS, QUALITIES
from tools.phrasebook.lexicon.nouns import NOUNS, Noun
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from tools.phrasebook.lexicon.places import BUILDINGS, COUNTRIES, Place
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import DUTIES, LEISURE
from tools.phrasebook.morphology import agreeing, be
from tools.phrasebook.noun_phrases import familiar, known, to

# Why somebody stayed away: Chinese, and English after "he".
_HINDRANCES = (
    ("很#very~was 累#how", "was~how very#very tired#how"),
    ("很#very~was 忙#how", "was~how very#very busy#how"),
    ("很#very~was 困#how", "was~how very#very sleepy#how"),
    ("很#very~was 难过#how", "was~how very#very sad#how"),
    ("很#very~was 生气#how", "was~how very#very angry#how"),
    ("没有#no~had 时间#what", "had~no no#no time#what"),
    ("没有#no~had 钱#what", "had~no no#no money#what"),
    ("生病#ill 了~ill", "was~ill sick#ill"),
    ("起#up 得~late 很#very 晚#late", "got#up up#up very#very late#late"),
)

_WEATHERS = (
    ("下雨#rain 了~rain", "it~rain rained#rain"),
    ("下雪#rain 了~rain", "it~rain snowed#rain"),
    ("天气#it 很#very 冷#cold", "the~it weather#it was~cold very#very cold#cold"),
    ("天气#it 不#not 好#cold", "the~it weather#it was~cold not#not good#cold"),
)


def _stayed_away(chance: Chance) -> Unit:
    """没去公园 / did not go to the park."""
    draw = chance.below(100)
    if draw < 45:
        return build(
            "没#no~did 去#go {place}",
            "did~did~go not#no go#go {place}",
            place=to_building(chance),
        )
    return leisure(chance).undone()


def _stayed_in(chance: Chance) -> Unit:
    """没去公园 / did not go to the park; 没游泳 / did not swim."""
    if chance.odds(0.5):
        return build(
            "没#no~did 去#go {place}",
            "did~did~go not#no go#go {place}",
            place=to(chance.deal(_OUTINGS)) if chance.odds(0.5) else to_commute(chance),
        )
    return Act(chance.deal(_OUTDOORS)).undone()


LANGUAGES = {
    "中国": "中文",
    "英国": "英语",
    "美国": "英语",
    "加拿大": "英语",
    "法国": "法语",
    "德国": "德语",
    "日本": "日语",
    "韩国": "韩语",
    "俄罗斯": "俄语",
    "西班牙": "西班牙语",
    "墨西哥": "西班牙语",
    "意大利": "意大利语",
    "埃及": "阿拉伯语",
    "澳大利亚": "英语",
    "新西兰": "英语",
}

_SPOKEN: tuple[tuple[Place, Noun], ...] = tuple(
    (place, NOUNS[LANGUAGES[place.zh]]) for place in COUNTRIES if place.zh in LANGUAGES
)


def because(chance: Chance) -> Unit:
    """因为他很累，所以没去公园 / He did not go to the park because he was very tired."""
    who = familiar(chance)
    draw = chance.below(100)
    if draw < 40:
        zh, en = chance.deal(_HINDRANCES)
        en = _plural(en) if who.person == "plural" else en
        return build(
            f"因为#because {{who}} {zh} ， 所以~because {{act}}",
            f"{{who}} {{act}} because#because {who.again}~who {en}",
            who=who.subject,
            act=_stayed_away(chance),
            name="because",
        )
    if draw < 70:
        zh, en = chance.deal(_WEATHERS)
        return build(
            f"因为#because {zh} ， 所以~because {{who}} {{act}}",
            f"{{who}} {{act}} because#because {en}",
            who=who.subject,
            act=_stayed_in(chance),
            name="because",
        )
    place, language = chance.deal(_SPOKEN)
    zh, en = chance.pick((("喜欢", "like"), ("爱", "love")))
    learn = agreeing("learn", who.person)
    return build(
        f"因为#because {{who}} {zh}#like {{place}} ， 所以~because 学#learn {{language}}",
        f"{{who}} {learn}#learn {{language}} because#because {who.again}~who "
        f"{agreeing(en, who.person)}#like {{place}}",
        who=who.subject,
        place=place.bare,
        language=language.one,
        name="because",
    )


def _plural(english: str) -> str:
    """The verb after "they": were for was."""
    return "were" + english.removeprefix("was") if english.startswith("was") else english


_CONTRASTS = (
    "贵 漂亮",
    "旧 干净",
    "小 舒服",
    "便宜 好吃",
    "旧 快",
    "新 脏",
    "小 重",
    "大 轻",
    "短 有意思",
    "难 有意思",
    "长 有意思",
    "旧 舒服",
    "薄 重",
    "小 甜",
    "旧 有用",
    "贵 好吃",
    "小 快",
    "便宜 漂亮",
    "酸 好吃",
    "危险 可怕",
    "危险 漂亮",
    "长 简单",
    "便宜 新鲜",
    "大 便宜",
    "薄 有用",
    "复杂 有意思",
)


def _contrasted() -> tuple[tuple[Noun, Unit, Unit], ...]:
    by_zh = {each.zh: each for each in QUALITIES}
    found = []
    for pair in _CONTRASTS:
        first, second = (by_zh[zh] for zh in pair.split())
        found += [
            (noun, first.plain, second.plain) for noun in first.things if noun in second.things
        ]
    return tuple(found)


_CONTRASTED = _contrasted()


def although(chance: Chance) -> Unit:
    """虽然他很累，但是还在工作 / Although he is very tired, he is still working."""
    who = familiar(chance)
    is_ = be(who.person)
    draw = chance.below(100)
    if draw < 45:
        return build(
            "虽然#although {who} 很#very {how} ，#comma 但是~although~comma "
            "还#still 在~is~act {act}",
            f"although#although {{who}} {is_}~how very#very {{how}} ,#comma {who.again}~who "
            f"{is_}~is~act still#still {{act}}",
            who=who.subject,
            how=chance.deal(_HARD_UP).plain,
            act=chance.deal(_TOIL).forms["ing"],
            name="although",
        )
    if draw < 75:
        noun, first, second = chance.deal(_CONTRASTED)
        thing = known(chance, noun)
        it, be_ = ("they", "are") if thing.person == "plural" else ("it", "is")
        return build(
            "虽然#although {thing} 很#very {first} ，#comma 但是~although~comma 很#very2 {second}",
            f"although#although {{thing}} {be_}~first very#very {{first}} ,#comma {it}~thing "
            f"{be_}~second very#very2 {{second}}",
            thing=thing,
            first=first,
            second=second,
            name="although",
        )
    place, language = chance.deal(_SPOKEN)
    want = agreeing("want", who.person)
    return build(
        "虽然#although {who} 不会#can 说#speak {language} ，#comma 但是~although~comma "
        "想#want 去#go {place}",
        f"although#although {{who}} cannot#can speak#speak {{language}} ,#comma {who.again}~who "
        f"{want}#want to~go~want go#go {{place}}",
        who=who.subject,
        language=language.one,
        place=to(place),
        name="although",
    )


_TOIL = select(
    (*DUTIES, *LEISURE),
    "工作 做饭 锻炼 写作业 开会 上课 学习 开车 打扫房间 洗衣服 洗碗 跑步 爬山 购物 跳舞 踢足球",
)

_HARD_UP = select(MOODS, "忙 累 难过 饿 渴 困 紧张 生气 担心 失望")

_AHEAD = (
    ("明天#day", "tomorrow#day"),
    ("后天#day", "the#day day#day after#day tomorrow#day"),
    ("这个周末#day", "this#day weekend#day"),
)

_BAD_WEATHER = (
    ("下雨#rain", "it~rain rains#rain"),
    ("下雪#rain", "it~rain snows#rain"),
    ("很#very~is 冷#cold", "it~cold is~cold very#very cold#cold"),
)

_GOOD_WEATHER = (
    ("天气#it 好#good", "the~it weather#it is~good good#good"),
    ("不#not~does 下雨#rain", "it~rain does~rain~does not#not rain#rain"),
    ("不#not~is 冷#cold", "it~cold is~cold~is not#not cold#cold"),
)

# A condition of one's own: Chinese, and English after "I" and after "he".
_MEANS = (
    ("有#have 时间#time", "have#have time#time"),
    ("有#have 钱#time", "have#have money#time"),
    ("不#not~is 忙#busy", "be~is~busy not#not busy#busy"),
    ("不#not~is 累#busy", "be~is~busy not#not tired#busy"),
    ("下班#off 早#early", "get#off off#off work#off early#early"),
)


def _weather(chance: Chance, kinds: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """明天下雨 / it rains tomorrow."""
    (day, day_en), (zh, en) = chance.deal(_AHEAD), chance.deal(kinds)
    return f"{day} {zh}", f"{en} {day_en}"


def _condition(chance: Chance, *, bad: bool) -> tuple[str, str, Named, Unit]:
    """A condition in both languages, who acts on it, and what they do."""
    draw = chance.below(100)
    if bad and draw < 25:
        zh, en = _weather(chance, _BAD_WEATHER)
        return zh, en, chance.deal(_ACTING), chance.deal(_INDOORS).forms["base"]
    if draw < 55:
        zh, en = _weather(chance, _GOOD_WEATHER)
        act = chance.deal(_OUTDOORS).forms["base"]
        if chance.odds(0.5):
            act = build("去#go {place}", "go#go {place}", place=to(chance.deal(_OUTINGS)))
        return zh, en, chance.deal(_ACTING), act
    who = chance.deal(_ACTING)
    zh, en = chance.deal(_MEANS)
    verb = en.partition("#")[0].partition("~")[0]
    now = be(who.person) if verb == "be" else agreeing(verb, who.person)
    rest = en.removeprefix(verb)
    act = chance.deal(LEISURE).forms["base"]
    if "钱" in zh:
        act = build("去#go {place}", "go#go {place}", place=to_land(chance))
    elif chance.odds(0.5):
        act = build("去#go {place}", "go#go {place}", place=to_building(chance))
    return f"{{who}} {zh}", f"{{who}} {now}{rest}", who, act


_ACTING = (*(each for each in PRONOUNS if each.zh != "你"), *NAMES)

_INDOORS = select(LEISURE, "看书 看电视 画画 弹钢琴 弹吉他 拉小提琴 下棋 唱歌 跳舞") + select(
    DUTIES, "睡觉 休息 学习 打扫房间 做饭 洗衣服"
)

_OUTDOORS = select(LEISURE, "游泳 跑步 散步 爬山 钓鱼 骑马 骑自行车 踢足球 拍照")

_OUTINGS = select(BUILDINGS, "公园 海边 动物园 广场 市场 游泳池")


def if_then(chance: Chance) -> Unit:
    """如果明天下雨，我就会看书 / If it rains tomorrow, I will read."""
    zh, en, who, act = _condition(chance, bad=True)
    if zh.startswith("{who}"):
        return build(
            f"如果#if {zh} ，#comma 就~will 会#will {{act}}",
            f"if#if {en} ,#comma {who.again}~who will#will {{act}}",
            who=who.subject,
            act=act,
            name="if_then",
        )
    return build(
        f"如果#if {zh} ，#comma {{who}} 就~will 会#will {{act}}",
        f"if#if {en} ,#comma {{who}} will#will {{act}}",
        who=who.subject,
        act=act,
        name="if_then",
    )


def as_long_as(chance: Chance) -> Unit:
    """只要不下雨，我们就去公园 / We will go to the park as long as it does not rain."""
    zh, en, who, act = _condition(chance, bad=False)
    if zh.startswith("{who}"):
        return build(
            f"只要#long {zh} ， 就~will 会#will {{act}}",
            "{who} will#will {act} as~long long#long as~long "
            + en.replace("{who}", f"{who.again}~who"),
            who=who.subject,
            act=act,
            name="as_long_as",
        )
    return build(
        f"只要#long {zh} ， {{who}} 就~will 会#will {{act}}",
        f"{{who}} will#will {{act}} as~long long#long as~long {en}",
        who=who.subject,
        act=act,
        name="as_long_as",
    )
