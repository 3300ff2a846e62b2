"""Two clauses in one sentence: reason, concession, condition, time."""

from regard.text.phrasebook.acts import Act, favor, leisure, pastime
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.constructions.settings import TRAVEL_FUTURE, TRAVEL_PAST
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.journeys import going, to_building, to_commute, to_land
from regard.text.phrasebook.lexicon.adjectives import MOODS, QUALITIES
from regard.text.phrasebook.lexicon.nouns import KINDS, NOUNS, Noun, nouns
from regard.text.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from regard.text.phrasebook.lexicon.places import BUILDINGS, COUNTRIES, Place
from regard.text.phrasebook.lexicon.scenes import SCENES
from regard.text.phrasebook.lexicon.selection import select
from regard.text.phrasebook.lexicon.times import FUTURE, OFTEN, PAST
from regard.text.phrasebook.lexicon.verbs import ACTIONS, DUTIES, LEISURE, LIKINGS
from regard.text.phrasebook.morphology import be, inflect, present
from regard.text.phrasebook.noun_phrases import (
    RELATIVES,
    familiar,
    one,
    other,
    somebody,
    spot,
    the,
    this,
    to,
)

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


_LANGUAGES = {
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
    (place, NOUNS[_LANGUAGES[place.zh]]) for place in COUNTRIES if place.zh in _LANGUAGES
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
    learn = inflect("learn", present(who.person))
    return build(
        f"因为#because {{who}} {zh}#like {{place}} ， 所以~because 学#learn {{language}}",
        f"{{who}} {learn}#learn {{language}} because#because {who.again}~who "
        f"{inflect(en, present(who.person))}#like {{place}}",
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
            "虽然#although {who} 很#very {how} ，#comma 但是~although~comma 还#still 在~is~act {act}",
            f"although#although {{who}} {is_}~how very#very {{how}} ,#comma {who.again}~who "
            f"{is_}~is~act still#still {{act}}",
            who=who.subject,
            how=chance.deal(_HARD_UP).plain,
            act=chance.deal(_TOIL).forms["ing"],
            name="although",
        )
    if draw < 75:
        noun, first, second = chance.deal(_CONTRASTED)
        thing = this(chance, noun)
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
    want = inflect("want", present(who.person))
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

_BAD_WEATHER = (
    ("明天#day 下雨#rain", "it~rain rains#rain tomorrow#day"),
    ("明天#day 下雪#rain", "it~rain snows#rain tomorrow#day"),
    ("明天#day 很#very~is 冷#cold", "it~cold is~cold very#very cold#cold tomorrow#day"),
)
_GOOD_WEATHER = (
    ("明天#day 天气#it 好#good", "the~it weather#it is~good good#good tomorrow#day"),
    ("明天#day 不#not~does 下雨#rain", "it~rain does~rain~does not#not rain#rain tomorrow#day"),
    ("明天#day 不#not~is 冷#cold", "it~cold is~cold~is not#not cold#cold tomorrow#day"),
)
# A condition of one's own: Chinese, and English after "I" and after "he".
_MEANS = (
    ("有#have 时间#time", "have#have time#time"),
    ("有#have 钱#time", "have#have money#time"),
    ("不#not~is 忙#busy", "be~is~busy not#not busy#busy"),
    ("不#not~is 累#busy", "be~is~busy not#not tired#busy"),
    ("下班#off 早#early", "get#off off#off work#off early#early"),
)


def _condition(chance: Chance, *, bad: bool) -> tuple[str, str, Named, Unit]:
    """A condition in both languages, who acts on it, and what they do."""
    draw = chance.below(100)
    if bad and draw < 25:
        zh, en = chance.deal(_BAD_WEATHER)
        return zh, en, chance.deal(_ACTING), chance.deal(_INDOORS).forms["base"]
    if draw < 55:
        zh, en = chance.deal(_GOOD_WEATHER)
        act = chance.deal(_OUTDOORS).forms["base"]
        if chance.odds(0.5):
            act = build("去#go {place}", "go#go {place}", place=to(chance.deal(_OUTINGS)))
        return zh, en, chance.deal(_ACTING), act
    who = chance.deal(_ACTING)
    zh, en = chance.deal(_MEANS)
    verb = en.partition("#")[0].partition("~")[0]
    now = be(who.person) if verb == "be" else inflect(verb, present(who.person))
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


def except_one(chance: Chance) -> Unit:
    """除了汤姆，大家都喜欢音乐 / Everyone likes music except Tom."""
    who = chance.deal(_EXCEPTED)
    outside = "以外~except" if chance.odds(0.4) else ""
    draw = chance.below(100)
    if draw < 55:
        verb, verb_en = chance.pick((("喜欢", "like"), ("爱", "love"), ("学", "learn")))
        thing = chance.deal(_LANGUAGE_NOUNS).one if verb == "学" else general_liking(chance)
        return build(
            f"除了#except {{who}} {outside} ， 大家#all 都~all {verb}#verb {{thing}}",
            f"everyone#all {inflect(verb_en, 'third')}#verb {{thing}} except#except {{who}}",
            who=who.object,
            thing=thing,
            name="except_one",
        )
    if draw < 80:
        return build(
            f"除了#except {{who}} {outside} ， 大家#all 都~all 去#go 过~has~go {{place}}",
            "everyone#all has~has~go been#go {place} except#except {who}",
            who=who.object,
            place=to_land(chance),
            name="except_one",
        )
    act = leisure(chance)
    return build(
        f"除了#except {{who}} {outside} ， 大家#all 都~all 想#want {{act}}",
        "everyone#all wants#want to~act~want {act} except#except {who}",
        who=who.object,
        act=act.form("base"),
        name="except_one",
    )


_EXCEPTED = (*PRONOUNS[:4], *NAMES, *RELATIVES[16:64])
_LANGUAGE_NOUNS = tuple(NOUNS[zh] for zh in sorted(set(_LANGUAGES.values())))


_ALIKE = ("fruit", "vegetable", "snack", "drink", "subject", "sport", "taste", "dish", "pet")


def general_liking(chance: Chance) -> Unit:
    """Something in general that people like: 苹果."""
    return chance.deal(LIKINGS[0].objects).many


def besides(chance: Chance) -> Unit:
    """除了英语，他还会说法语 / Besides English, he can also speak French."""
    who = somebody(chance)
    draw = chance.below(100)
    if draw < 50:
        first, second = (noun.one for noun in chance.shuffle(_LANGUAGE_NOUNS)[:2])
        return build(
            "除了#besides {first} ，#comma {who} 还#also 会#can 说#speak {second}",
            "besides#besides {first} ,#comma {who} can#can also#also speak#speak {second}",
            who=who.subject,
            first=first,
            second=second,
            name="besides",
        )
    if draw < 75:
        here, there = chance.shuffle(COUNTRIES)[:2]
        want = inflect("want", present(who.person))
        return build(
            "除了#besides {first} ，#comma {who} 还#also 想#want 去#go {second}",
            f"besides#besides {{first}} ,#comma {{who}} also#also {want}#want to~go~want go#go "
            "{second}",
            who=who.subject,
            first=spot(here),
            second=to(there),
            name="besides",
        )
    kind = KINDS[chance.pick(_ALIKE)]
    first, second = (noun.many for noun in chance.shuffle(kind)[:2])
    like = inflect("like", present(who.person))
    return build(
        "除了#besides {first} ，#comma {who} 还#also 喜欢#like {second}",
        f"besides#besides {{first}} ,#comma {{who}} also#also {like}#like {{second}}",
        who=who.subject,
        first=first,
        second=second,
        name="besides",
    )


# A turn of the day that another act follows at once.
_TRIGGERS = (
    ("回家", "get home"),
    ("下班", "get off work"),
    ("起床", "get up"),
    ("到办公室", "get to the office"),
    ("到学校", "get to school"),
    ("吃完晚饭", "finish dinner"),
    ("吃完早饭", "finish breakfast"),
)


_AT_ONCE = select(
    (*LEISURE, *DUTIES),
    "跑步 唱歌 散步 看书 画画 看电视 弹钢琴 弹吉他 拉小提琴 下棋 踢足球 睡觉 工作 休息 洗澡 锻炼 写作业 学习 做饭 打扫房间",
)


def as_soon_as(chance: Chance) -> Unit:
    """他一回家就看电视 / He watches TV as soon as he gets home."""
    who = familiar(chance)
    zh, en = chance.deal(_TRIGGERS)
    first = inflect(en, present(who.person)).replace(" ", "#first ")
    act = Act(chance.deal(_AT_ONCE)) if chance.odds(0.6) else pastime(chance)
    return build(
        f"{{who}} 一#soon {zh}#first 就~soon {{act}}",
        f"{{who}} {{act}} as~soon soon#soon as~soon {who.again}~who {first}#first",
        who=who.subject,
        act=act.now(who.person),
        name="as_soon_as",
    )


_HANDS_BUSY = select(
    (*LEISURE, *DUTIES),
    "做饭 洗碗 吃饭 散步 开车 画画 写作业 洗衣服 打扫房间 跑步 工作 钓鱼 骑自行车 锻炼 洗澡",
)
_MEANWHILE = (
    ("听音乐", "listen to music"),
    ("唱歌", "sing"),
    ("聊天", "chat"),
    ("听京剧", "listen to Beijing opera"),
    ("听故事", "listen to stories"),
    ("喝咖啡", "drink coffee"),
    ("喝茶", "drink tea"),
)


def while_doing(chance: Chance) -> Unit:
    """他常常一边做饭一边听音乐 / He often listens to music while cooking."""
    who = somebody(chance)
    zh, en = chance.deal(_MEANWHILE)
    second = inflect(en, present(who.person)).replace(" ", "#second ")
    return build(
        f"{{who}} {{often}} 一边#while {{first}} 一边~while {zh}#second",
        f"{{who}} {{often}} {second}#second while#while {{first}}",
        who=who.subject,
        often=chance.deal(OFTEN),
        first=chance.deal(_HANDS_BUSY).forms["ing"],
        name="while_doing",
    )


_MARKS_OF_DAY: tuple[tuple[str, str], ...] = (
    ("睡觉", "going to bed"),
    ("吃早饭", "eating breakfast"),
    ("吃午饭", "eating lunch"),
    ("吃晚饭", "eating dinner"),
    ("上班", "going to work"),
    ("下班", "getting off work"),
    ("起床", "getting up"),
    ("出门", "going out"),
    ("上课", "having class"),
)


_QUIET = select(LEISURE, "看书 看电视 画画 弹钢琴 弹吉他 拉小提琴 下棋 唱歌 跳舞 跑步 散步 聊天")


def before_after(chance: Chance) -> Unit:
    """他睡觉以前常常看书 / He often reads before going to bed."""
    who = somebody(chance)
    zh, en = chance.deal(_MARKS_OF_DAY)
    when, when_en = chance.pick((("以前", "before"), ("以后", "after")))
    if zh in {"睡觉", "上班", "出门"}:
        when, when_en = "以前", "before"
    if zh in {"起床", "下班"}:
        when, when_en = "以后", "after"
    if zh not in {"睡觉", "出门", "起床"} and chance.odds(0.4):
        act = going(to_commute(chance), inflect("go", present(who.person)))
    else:
        act = chance.deal(_QUIET).forms[present(who.person)]
    marked = en.replace(" ", "#first ")
    return build(
        f"{{who}} {zh}#first {when}#when {{often}} {{act}}",
        f"{{who}} {{often}} {{act}} {when_en}#when {marked}#first",
        who=who.subject,
        often=chance.deal(OFTEN),
        act=act,
        name="before_after",
    )


def when_doing(chance: Chance) -> Unit:
    """我回家的时候，妈妈正在做饭 / My mother was cooking when I got home."""
    who = familiar(chance)
    if chance.odds(0.6):
        come, acts = chance.deal(_ARRIVING)
        whom = other(chance, who)
        return build(
            "{who} {come} 的时候#when ， {whom} 正在~was~act {act}",
            f"{{whom}} {be(whom.person, past=True)}~was~act {{act}} when#when {{who}} {{come}}",
            who=who.subject,
            come=come,
            whom=whom.subject,
            act=chance.deal(acts).forms["ing"],
            name="when_doing",
        )
    act = chance.deal(_HANDS_BUSY).forms[present(who.person)]
    like = inflect("like", present(who.person))
    zh, en = chance.deal(_MEANWHILE)
    second = inflect(en, "ing").replace(" ", "#second ")
    return build(
        f"{{who}} {{act}} 的时候#when ， 喜欢#like {zh}#second",
        f"{{who}} {like}#like {second}#second when#when {who.again}~who {{act}}",
        who=who.subject,
        act=act,
        name="when_doing",
    )


_ARRIVING = (
    (
        build("回家#come", "got#come home#come"),
        select(LEISURE, "看书 看电视 画画 弹钢琴 弹吉他 拉小提琴 下棋 唱歌 聊天")
        + select(DUTIES, "睡觉 做饭 洗澡 写作业 打扫房间 洗衣服 洗碗 吃饭"),
    ),
    (
        build("到#come 学校#place", "got#come to~place school#place"),
        select(LEISURE, "踢足球 唱歌 跑步 跳舞 画画 看书 聊天")
        + select(DUTIES, "上课 学习 锻炼 休息"),
    ),
    (
        build("到#come 办公室#place", "got#come to~place the~place office#place"),
        select(LEISURE, "聊天 看书") + select(DUTIES, "工作 开会 休息 吃饭 睡觉"),
    ),
    (
        build("起床#come", "got#come up#come"),
        select(LEISURE, "看书 看电视 跑步 画画 散步")
        + select(DUTIES, "做饭 洗衣服 睡觉 锻炼 洗澡"),
    ),
    (
        build("打电话#come", "called#come"),
        (*select(LEISURE, "购物 钓鱼 骑自行车 爬山 看电视"), *DUTIES),
    ),
)


def told(chance: Chance) -> Unit:
    """妈妈昨天让我打扫房间 / My mother told me to clean the room yesterday."""
    who = somebody(chance)
    whom = other(chance, who)
    zh, en = chance.pick((("让", "told"), ("请", "asked"), ("叫", "told")))
    act = Act(chance.deal(_CHORES)) if chance.odds(0.55) else favor(chance)
    return build(
        f"{{who}} {{time}} {zh}#tell {{whom}} {{act}}",
        f"{{who}} {en}#tell {{whom}} to~act {{act}} {{time}}",
        who=who.subject,
        time=chance.deal(PAST),
        whom=whom.object,
        act=act.form("base"),
        name="told",
    )


_CHORES = select(DUTIES, "睡觉 休息 做饭 洗澡 锻炼 写作业 学习 打扫房间 洗衣服 洗碗 工作")


def purpose(chance: Chance) -> Unit:
    """我昨天去超市买了牛奶 / I went to the supermarket to buy milk yesterday."""
    who = somebody(chance)
    place, deeds = chance.deal(SCENES)
    while place.zh in _AT_HOME or (deeds[0][0].zh == "工作" and len(deeds) == 1):
        place, deeds = chance.deal(SCENES)
    verb, objects = chance.deal(deeds)
    act = Act(verb, one(chance.deal(objects))) if objects else Act(verb)
    if chance.odds(0.5):
        return build(
            "{who} {time} 去#go {place} {verb} 了~verb~go {thing}",
            "{who} went#go {place} to~verb {verb} {thing} {time}",
            who=who.subject,
            time=chance.deal(TRAVEL_PAST if place.is_land else PAST),
            place=to(place),
            verb=verb.forms["base"],
            thing=act.object,
            name="purpose",
        )
    return build(
        "{who} {time} 会#will 去#go {place} {act}",
        "{who} will#will go#go {place} to~act {act} {time}",
        who=who.subject,
        time=chance.deal(TRAVEL_FUTURE if place.is_land else FUTURE),
        place=to(place),
        act=act.form("base"),
        name="purpose",
    )


_AT_HOME = frozenset(["厨房", "客厅", "卧室", "花园", "院子", "阳台", "书房", "宿舍", "教室"])


def easy_to(chance: Chance) -> Unit:
    """学中文很容易 / It is very easy to learn Chinese."""
    zh, en, verbs = chance.deal(_EASE)
    verb = chance.deal(verbs)
    act = Act(verb, chance.deal(verb.objects).many) if verb.objects else Act(verb)
    very, very_en = chance.pick(_DEGREES[:2] if zh == "重要" else _DEGREES)
    return build(
        f"{{act}} {very}#very {zh}#how",
        f"it~act is~how {very_en}#very {en}#how to~act {{act}}",
        act=act.form("base"),
        name="easy_to",
    )


_DEGREES = (("很", "very"), ("非常", "extremely"), ("不", "not"))
_CRAFTS = (
    *select(ACTIONS, "写 画 学 学习 教 做 种 翻译 打"),
    *select((*LEISURE, *DUTIES), "游泳 跳舞 滑雪 滑冰 骑马 开车 弹钢琴 弹吉他 拉小提琴 做饭 爬山"),
)
_EASE = (
    ("容易", "easy", _CRAFTS),
    ("难", "difficult", _CRAFTS),
    ("简单", "simple", select(ACTIONS, "做 种 画")),
    ("有意思", "interesting", (*select(ACTIONS, "写 画 学 教 做 种 收集 看 听"), *LEISURE)),
    ("重要", "important", (*select(ACTIONS, "学 学习"), *select(DUTIES, "休息 锻炼 睡觉 学习"))),
)

_TASKS: tuple[tuple[str, str, str], ...] = (
    ("学", "learn", "language 网球 象棋 钢琴 小提琴 吉他"),
    ("唱", "sing", "歌"),
    ("懂", "understand", "诗 文章 书 小说 电影 故事 问题"),
    ("做", "make", "baked snack 玩具"),
    ("洗", "wash", "clothing 毛巾 毯子 tableware"),
    ("修", "repair", "machine ridden car 钟"),
    ("画", "draw", "马 树 wild flower"),
    ("搬", "move", "furniture 冰箱 洗衣机 钢琴"),
    ("用", "use", "电脑 手机 相机 词典 洗衣机"),
    ("翻译", "translate", "诗 文章 信 小说 故事"),
)


_TASK_THINGS = tuple((zh, en, nouns(things)) for zh, en, things in _TASKS)


def hard_to(chance: Chance) -> Unit:
    """这首歌很难唱 / This song is very difficult to sing."""
    verb, verb_en, things = chance.deal(_TASK_THINGS)
    noun = chance.deal(things)
    thing = this(chance, noun) if noun.is_counted and noun.zh not in _LEARNED else the(noun)
    zh, en = chance.pick((("难", "difficult"), ("容易", "easy")))
    very, very_en = chance.pick((("很", "very"), ("不", "not"), ("非常", "extremely")))
    return build(
        f"{{thing}} {very}#very {zh}#how {verb}#verb",
        f"{{thing}} {be(thing.person)}~how {very_en}#very {en}#how to~verb {verb_en}#verb",
        thing=thing,
        name="hard_to",
    )


_LEARNED = frozenset(["钢琴", "小提琴", "吉他"])
