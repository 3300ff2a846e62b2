"""What has been, has just been, has not yet been, and will be again."""

from tools.phrasebook.acts import KNOWN_DEEDS, Act, known_deed, milestone
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.settings import TRAVEL_PAST
from tools.phrasebook.constructions.statements import state
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import to_building, to_land, went
from tools.phrasebook.lexicon.adjectives import COLORS
from tools.phrasebook.lexicon.nouns import KINDS, NOUNS, Noun, nouns
from tools.phrasebook.lexicon.people import Named
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.times import PAST
from tools.phrasebook.lexicon.verbs import (
    ACTIONS,
    ACTIVITIES,
    DAILY,
    DEALINGS,
    DEEDS,
    GO_TO_BED,
    OUTBURSTS,
    Verb,
)
from tools.phrasebook.morphology import be, have, inflect
from tools.phrasebook.noun_phrases import one, other, single, somebody, this

_MOMENTS = (*DAILY, GO_TO_BED)
_FINISHED = tuple(verb for verb in KNOWN_DEEDS if verb.zh not in {"找", "用", "带"})


def _moment(chance: Chance, who: Named) -> Act:
    """Something that is over as soon as it is done: 回家, 结婚."""
    return milestone(chance, who) if chance.odds(0.4) else Act(chance.deal(_MOMENTS))


def _just_now(chance: Chance, who: Named) -> Act:
    return milestone(chance, who) if chance.odds(0.5) else Act(chance.deal(_JUST_NOW))


def _soon(chance: Chance, who: Named) -> Act:
    return milestone(chance, who) if chance.odds(0.5) else Act(chance.deal(_SOON))


_JUST_NOW = select(_MOMENTS, "起床 回家 下班 出门")
_TRIED = select(ACTIONS, "吃 看 听 学 学习 教 画 做 打 种 翻译")


# What not everybody has eaten.
_TASTED = nouns("豆腐 羊肉 饺子 包子 芒果 奶酪 汉堡 冰淇淋 蘑菇")


def tried(chance: Chance) -> tuple[Verb, Unit]:
    """Something one may have done before, to things in general or to this one."""
    verb = chance.deal(_TRIED)
    noun = chance.deal(_TASTED if verb.zh == "吃" else verb.objects)
    if verb.zh in {"看", "听", "翻译"} and noun.is_counted:
        return verb, this(chance, noun)
    return verb, noun.many


def experience(chance: Chance) -> Unit:
    """我去过中国 / I have been to China; 她看过这部电影 / She has watched this movie."""
    who = somebody(chance)
    has = have(who.person)
    if chance.odds(0.5):
        return build(
            "{who} 去#go 过~have~go {place}",
            f"{{who}} {has}~have~go been#go {{place}}",
            who=who.subject,
            place=to_land(chance),
            name="experience",
        )
    act = Act(*tried(chance))
    return build(
        "{who} {act}",
        f"{{who}} {has}~act {{act}}",
        who=who.subject,
        act=act.once(),
        name="experience",
    )


def never(chance: Chance) -> Unit:
    """我从来没去过中国 / I have never been to China."""
    who = somebody(chance)
    has = have(who.person)
    if chance.odds(0.5):
        return build(
            "{who} 从来#never 没~never~have 去#go 过~have~go {place}",
            f"{{who}} {has}~have~go never#never been#go {{place}}",
            who=who.subject,
            place=to_land(chance),
            name="never",
        )
    act = Act(*tried(chance))
    return build(
        "{who} 从来#never 没~never~have {act}",
        f"{{who}} {has}~have~act never#never {{act}}",
        who=who.subject,
        act=act.once(),
        name="never",
    )


def already(chance: Chance) -> Unit:
    """他已经回家了 / He has already gone home."""
    who = somebody(chance)
    has = have(who.person)
    if chance.odds(0.4):
        act = _moment(chance, who).form("participle")
        return build(
            "{who} 已经#already {act} 了~act~have",
            f"{{who}} {has}~have~act already#already {{act}}",
            who=who.subject,
            act=act,
            name="already",
        )
    deed = known_deed(chance, _FINISHED)
    return build(
        "{who} 已经#already {verb} 了~verb~have {thing}",
        f"{{who}} {has}~have~verb already#already {{verb}} {{thing}}",
        who=who.subject,
        verb=deed.verb.forms["participle"],
        thing=deed.object,
        name="already",
    )


def not_yet(chance: Chance) -> Unit:
    """他还没看这本书 / He has not read this book yet."""
    who = somebody(chance)
    has = have(who.person)
    act = (
        _moment(chance, who).form("participle")
        if chance.odds(0.4)
        else known_deed(chance, _FINISHED).form("participle")
    )
    return build(
        "{who} 还#yet 没#no~have {act}",
        f"{{who}} {has}~have~act not#no {{act}} yet#yet",
        who=who.subject,
        act=act,
        name="not_yet",
    )


def just(chance: Chance) -> Unit:
    """我刚起床 / I have just gotten up."""
    who = somebody(chance)
    if chance.odds(0.5):
        act = _just_now(chance, who).form("participle")
    else:
        deed = known_deed(chance, _FINISHED)
        act = build(
            "{verb}! 了~verb {thing}",
            "{verb}! {thing}",
            verb=deed.verb.forms["participle"],
            thing=deed.object,
        )
    return build(
        "{who} 刚#just {act}",
        f"{{who}} {have(who.person)}~just~act just#just {{act}}",
        who=who.subject,
        act=act,
        name="just",
    )


_SOON = select(_MOMENTS, "出门 下班 睡觉")


_LEAVING = select(NOUNS.values(), "火车 船 公共汽车")


def about_to(chance: Chance) -> Unit:
    """他快要毕业了 / He is about to graduate; 火车快要开了 / The train is about to leave."""
    if chance.odds(0.25):
        noun = chance.deal(_LEAVING)
        return build(
            "{thing} 快要#soon 开#go 了~soon",
            "the~thing {thing} is~soon about#soon to~go~soon leave#go",
            thing=noun.one,
            name="about_to",
        )
    who = somebody(chance)
    return build(
        "{who} 快要#soon {act} 了~soon",
        f"{{who}} {be(who.person)}~soon about#soon to~act~soon {{act}}",
        who=who.subject,
        act=_soon(chance, who).form("base"),
        name="about_to",
    )


def colored(chance: Chance, noun: Noun) -> Unit:
    """一件红色的毛衣 / a red sweater."""
    color = chance.deal(COLORS).plain
    if noun.is_pair:
        return build(
            f"一~pair {noun.measure}#pair {{color}} 的~color {{noun}}!",
            "a~pair~noun pair#pair of~pair~noun {color} {noun}!",
            color=color,
            noun=noun.many,
            name="color",
        )
    return build(
        f"一~a {noun.measure}~a {{color}} 的~color {{noun}}!",
        "a~a~noun {color} {noun}!",
        color=color,
        noun=noun.one,
        name="color",
    )


# What is put on with 穿, and what with 戴.
_ON_BODY = (
    *(("穿", noun) for noun in KINDS["clothing"]),
    *(("戴", noun) for noun in KINDS["accessory"]),
)
_COLORLESS = {"眼镜", "戒指", "手表"}
_WORN_BY = {
    "she": tuple(worn for worn in _ON_BODY if worn[1].zh != "领带"),
    "he": tuple(worn for worn in _ON_BODY if worn[1].zh != "裙子"),
}
_COLORED_ON = {
    who: tuple(worn for worn in table if worn[1].zh not in _COLORLESS)
    for who, table in _WORN_BY.items()
}


def worn_bare(chance: Chance, who: str) -> tuple[str, Unit]:
    """The Chinese verb for wearing it, and what is worn: 红色毛衣 / a red sweater.

    Args:
        chance: What decides.
        who: Whether "she" or "he" wears it.
    """
    verb, noun = chance.deal(_COLORED_ON[who])
    color = chance.deal(COLORS).plain
    a = "a~noun pair~noun of~noun" if noun.is_pair else "a~noun"
    return verb, build(
        "{color} {noun}!", f"{a} {{color}} {{noun}}!", color=color, noun=noun.one, name="color"
    )


def wearing(chance: Chance) -> Unit:
    """她穿着一件红色的毛衣 / She is wearing a red sweater."""
    who = single(chance)
    verb, noun = chance.deal(_WORN_BY["she" if who.again == "she" else "he"])
    thing = one(noun) if noun.zh in _COLORLESS else colored(chance, noun)
    return build(
        f"{{who}} {verb}#wear 着~wear~is {{thing}}",
        f"{{who}} {be(who.person)}~is~wear wearing#wear {{thing}}",
        who=who.subject,
        thing=thing,
        name="wearing",
    )


def _given_up(chance: Chance) -> Act:
    """What one may give up: 喝啤酒, 跑步."""
    if chance.odds(0.4):
        return Act(chance.deal(_PURSUITS))
    verb = chance.deal(_CUSTOMS)
    return Act(verb, chance.deal(verb.objects).many)


_PURSUITS = select(
    ACTIVITIES, "跑步 钓鱼 工作 锻炼 弹钢琴 弹吉他 踢足球 骑马 画画 下棋 跳舞 骑自行车 开车"
)
_CUSTOMS = select(ACTIONS, "吃 喝 学 学习 教 打 卖 种 收集")


def no_longer(chance: Chance) -> Unit:
    """他不喝啤酒了 / He no longer drinks beer."""
    who = somebody(chance)
    act = _given_up(chance) if chance.odds(0.6) else state(chance)
    return build(
        "{who} 不#no~longer {act} 了~no~longer",
        "{who} no#no longer~longer {act}",
        who=who.subject,
        act=act.now(who.person),
        name="no_longer",
    )


def again(chance: Chance) -> Unit:
    """他昨天又迟到了 / He was late again yesterday."""
    who = somebody(chance)
    times = PAST
    draw = chance.below(100)
    if draw < 45:
        verb = chance.deal(OUTBURSTS)
        past = (
            be(who.person, past=True) + " late" if verb.zh == "迟到" else inflect(verb.en, "past")
        )
        act = build(f"{verb.zh}#act 了~act", past.replace(" ", "#act ") + "#act")
    elif draw < 70:
        abroad = chance.odds(0.5)
        times = TRAVEL_PAST if abroad else PAST
        act = went(to_land(chance) if abroad else to_building(chance))
    elif draw < 85:
        act = Act(chance.deal(DEALINGS), other(chance, who).object).done()
    else:
        act = known_deed(chance, _REDONE).done()
    if chance.odds(0.5):
        return build(
            "{who} {time} 又#again {act}",
            "{who} {act} again#again {time}",
            who=who.subject,
            time=chance.deal(times),
            act=act,
            name="again",
        )
    return build(
        "{who} 又#again {act}", "{who} {act} again#again", who=who.subject, act=act, name="again"
    )


_REDONE = select(DEEDS, "看 听 用 借 洗 修 检查 找 打开 翻译")


def once_more(chance: Chance) -> Unit:
    """我想再去一次中国 / I want to go to China again."""
    who = somebody(chance)
    want = inflect("want", "third") if who.person == "singular" else "want"
    if chance.odds(0.6):
        return build(
            "{who} 想#want 再#again 去#go 一次~again {place}",
            f"{{who}} {want}#want to~go~want go#go {{place}} again#again",
            who=who.subject,
            place=to_land(chance),
            name="once_more",
        )
    verb = chance.deal(_REPEATED)
    return build(
        "{who} 想#want 再#again {verb} 一次~again {thing}",
        f"{{who}} {want}#want to~verb~want {{verb}} {{thing}} again#again",
        who=who.subject,
        verb=verb.forms["base"],
        thing=this(chance, chance.deal(verb.objects)),
        name="once_more",
    )


_REPEATED = select((*ACTIONS,), "看 翻译 修")
