"""One act before, after, during or for the sake of another: 一…就, 一边…一边, 以前, 的时候."""

from tools.phrasebook.acts import Act, favor, pastime
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.settings import TRAVEL_FUTURE, TRAVEL_PAST
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import going, to_commute
from tools.phrasebook.lexicon.scenes import SCENES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import FUTURE, OFTEN, PAST
from tools.phrasebook.lexicon.verbs import DUTIES, LEISURE, Verb
from tools.phrasebook.morphology import agreeing, be, inflect, present
from tools.phrasebook.noun_phrases import (
    familiar,
    one,
    other,
    somebody,
    to,
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
    "跑步 唱歌 散步 看书 画画 看电视 弹钢琴 弹吉他 拉小提琴 下棋 踢足球 "
    "睡觉 工作 休息 洗澡 锻炼 写作业 学习 做饭 打扫房间",
)


def as_soon_as(chance: Chance) -> Unit:
    """他一回家就看电视 / He watches TV as soon as he gets home."""
    who = familiar(chance)
    zh, en = chance.deal(_TRIGGERS)
    first = agreeing(en, who.person).replace(" ", "#first ")
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
)
_SIPPING = (("喝咖啡", "drink coffee"), ("喝茶", "drink tea"))
_SEATED = select((*LEISURE, *DUTIES), "画画 写作业 工作 钓鱼")


def _meanwhile(chance: Chance, verb: Verb) -> tuple[str, str]:
    """What one can do while doing something else: 听音乐, and 喝茶 where one sits."""
    if verb in _SEATED and chance.odds(0.3):
        return chance.deal(_SIPPING)
    return chance.deal(_MEANWHILE)


def while_doing(chance: Chance) -> Unit:
    """他常常一边做饭一边听音乐 / He often listens to music while cooking."""
    who = somebody(chance)
    verb = chance.deal(_HANDS_BUSY)
    zh, en = _meanwhile(chance, verb)
    second = agreeing(en, who.person).replace(" ", "#second ")
    return build(
        f"{{who}} {{often}} 一边#while {{first}} 一边~while {zh}#second",
        f"{{who}} {{often}} {second}#second while#while {{first}}",
        who=who.subject,
        often=chance.deal(OFTEN),
        first=verb.forms["ing"],
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
        act = going(to_commute(chance), agreeing("go", who.person))
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
    comma = "，" if chance.odds(0.6) else ""
    if chance.odds(0.6):
        come, acts = chance.deal(_ARRIVING)
        whom = other(chance, who)
        return build(
            f"{{who}} {{come}} 的时候#when {comma} {{whom}} 正在~was~act {{act}}",
            f"{{whom}} {be(whom.person, past=True)}~was~act {{act}} when#when {{who}} {{come}}",
            who=who.subject,
            come=come,
            whom=whom.subject,
            act=chance.deal(acts).forms["ing"],
            name="when_doing",
        )
    verb = chance.deal(_HANDS_BUSY)
    act = verb.forms[present(who.person)]
    like = agreeing("like", who.person)
    zh, en = _meanwhile(chance, verb)
    second = inflect(en, "ing").replace(" ", "#second ")
    return build(
        f"{{who}} {{act}} 的时候#when {comma} 喜欢#like {zh}#second",
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


_AT_HOME = {"厨房", "客厅", "卧室", "花园", "院子里", "阳台", "书房", "宿舍", "教室"}
