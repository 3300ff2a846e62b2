"""Questions: 吗, A-not-A, a choice of two, and 呢."""

from tools.phrasebook.acts import Act, handling, pastime, planned_act
from tools.phrasebook.chance import Chance
from tools.phrasebook.constructions.aspects import tried
from tools.phrasebook.constructions.settings import TRAVEL_FUTURE, TRAVEL_PAST
from tools.phrasebook.constructions.statements import described, speaking, state
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.journeys import land, to_land
from tools.phrasebook.lexicon.adjectives import MOODS, QUALITIES, TRAITS
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS, Named
from tools.phrasebook.lexicon.places import CITIES, COUNTRIES, Place
from tools.phrasebook.lexicon.times import FUTURE, HABIT, PAST
from tools.phrasebook.lexicon.verbs import FEELINGS, LIKINGS, SKILLS
from tools.phrasebook.morphology import be, do, have
from tools.phrasebook.noun_phrases import asked, certain, definite, known, other, spot


def what_about(chance: Chance) -> Unit:
    """我喜欢茶。你呢？ / I like tea. How about you?"""
    act = state(chance)
    first, second = chance.pick(_TALKERS), chance.pick(_TALKERS)
    while second.zh[0] == first.zh[0]:
        second = chance.pick(_TALKERS)
    return build(
        "{first} {act} 。#stop {second} 呢#about ？#end~about",
        "{first} {act} .#stop How#about about#about {second} ?#end",
        first=first.subject,
        act=act.now(first.person),
        second=second.object,
        name="what_about",
    )


_TALKERS = (*PRONOUNS, *NAMES[:8])

_QUALIFIED = (*TRAITS, *MOODS)


def yes_no(chance: Chance) -> Unit:
    """你喜欢苹果吗？ / Do you like apples?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 35:
        return _asked_now(who, state(chance))
    if draw < 50:
        return _asked_now(who, Act(chance.deal(FEELINGS), other(chance, who).object))
    if draw < 75:
        return build(
            "{who} {how} 吗~is ？#end",
            f"{be(who.person)}~is~how {{who}} {{how}} ?#end",
            who=who.subject,
            how=chance.deal(_QUALIFIED).plain,
            name="yes_no",
        )
    adjective = chance.deal(QUALITIES)
    thing = known(chance, chance.deal(adjective.things))
    return build(
        "{thing} {how} 吗~is ？#end",
        f"{be(thing.person)}~is~how {{thing}} {{how}} ?#end",
        thing=thing,
        how=adjective.plain,
        name="yes_no",
    )


def _asked_now(who: Named, act: Act) -> Unit:
    return build(
        "{who} {act} 吗~do ？#end",
        f"{do(who.person)}~do~act {{who}} {{act}} ?#end",
        who=who.subject,
        act=act.form("base"),
        name="yes_no",
    )


def yes_no_then(chance: Chance) -> Unit:
    """她昨天买苹果了吗？ / Did she buy apples yesterday?"""
    who = asked(chance)
    time = chance.deal(PAST)
    draw = chance.below(100)
    if draw < 30:
        time = chance.deal(TRAVEL_PAST)
        act = build("去#go! {place}", "go#go! {place}", place=to_land(chance))
    else:
        act = pastime(chance).form("base")
    return build(
        "{who} {time} {act} 了~did~act 吗~did ？#end",
        "did~did~act {who} {act} {time} ?#end",
        who=who.subject,
        time=time,
        act=act,
        name="yes_no_then",
    )


def yes_no_ever(chance: Chance) -> Unit:
    """你去过中国吗？ / Have you ever been to China?"""
    who = asked(chance)
    has = have(who.person)
    if chance.odds(0.5):
        return build(
            "{who} 去#go 过~has~ever {place} 吗~has ？#end",
            f"{has}~has {{who}} ever~ever been#go {{place}} ?#end",
            who=who.subject,
            place=to_land(chance),
            name="yes_no_ever",
        )
    verb, thing = tried(chance)
    return build(
        "{who} {verb} 过~has~ever {thing} 吗~has ？#end",
        f"{has}~has~verb {{who}} ever~ever {{verb}} {{thing}} ?#end",
        who=who.subject,
        verb=verb.forms["participle"],
        thing=thing,
        name="yes_no_ever",
    )


def can_you(chance: Chance) -> Unit:
    """你会游泳吗？ / Can you swim?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 40:
        zh, act = "会", Act(chance.deal(SKILLS)).form("base")
    elif draw < 65:
        zh, act = "会", speaking(chance).form("base")
    else:
        zh, act = "能", handling(chance).form("base")
    return build(
        f"{{who}} {zh}#can {{act}} 吗~can ？#end",
        "can#can {who} {act} ?#end",
        who=who.subject,
        act=act,
        name="can_you",
    )


def will_you(chance: Chance) -> Unit:
    """你明天会去北京吗？ / Will you go to Beijing tomorrow?"""
    who = asked(chance)
    time = chance.deal(FUTURE)
    if chance.odds(0.35):
        time = chance.deal(TRAVEL_FUTURE)
        act = build("去#go {place}", "go#go {place}", place=to_land(chance))
    else:
        act = planned_act(chance, who).form("base")
    return build(
        "{who} {time} 会#will {act} 吗~will ？#end",
        "will#will {who} {act} {time} ?#end",
        who=who.subject,
        time=time,
        act=act,
        name="will_you",
    )


def a_not_a(chance: Chance) -> Unit:
    """你喜欢不喜欢苹果？ / Do you like apples? 他高不高？ / Is he tall?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 35:
        verb = chance.pick(LIKINGS[:2])
        thing = chance.deal(verb.objects).many if chance.odds(0.6) else land(chance)
        return build(
            f"{{who}} {{verb}} 不~do {verb.zh}~verb {{thing}} ？#end",
            f"{do(who.person)}~do~verb {{who}} {{verb}} {{thing}} ?#end",
            who=who.subject,
            verb=verb.forms["base"],
            thing=thing,
            name="a_not_a",
        )
    if draw < 60:
        role = chance.deal(KINDS["role"])
        many = who.person == "plural" and who.zh != "你"
        return build(
            "{who} 是#is 不~is 是~is {role} ？#end",
            f"{be(who.person)}#is {{who}} {'' if many else 'a~role'} {{role}} ?#end",
            who=who.subject,
            role=role.many if many else role.one,
            name="a_not_a",
        )
    if draw < 80:
        how = chance.deal(_SHORT_QUALITIES)
        return build(
            f"{{who}} {{how}} 不~is {how.zh}~how ？#end",
            f"{be(who.person)}~is~how {{who}} {{how}} ?#end",
            who=who.subject,
            how=how.plain,
            name="a_not_a",
        )
    adjective = chance.deal(_SHORT_THINGS)
    thing = known(chance, chance.deal(adjective.things))
    return build(
        f"{{thing}} {{how}} 不~is {adjective.zh}~how ？#end",
        f"{be(thing.person)}~is~how {{thing}} {{how}} ?#end",
        thing=thing,
        how=adjective.plain,
        name="a_not_a",
    )


_SHORT_QUALITIES = tuple(each for each in _QUALIFIED if len(each.zh) == 1)

_SHORT_THINGS = tuple(each for each in QUALITIES if len(each.zh) == 1)


def have_or_not(chance: Chance) -> Unit:
    """你有没有雨伞？ / Do you have an umbrella?"""
    who = asked(chance)
    noun = chance.deal(_OWNED)
    a = "" if noun.is_pair else "a~noun"
    return build(
        "{who} 有#have 没~do 有~have {noun} ？#end",
        f"{do(who.person)}~do~have {{who}} have#have {a} {{noun}} ?#end",
        who=who.subject,
        noun=noun.one,
        name="have_or_not",
    )


_OWNED = nouns("carried book ridden car instrument pet machine furniture 手表 眼镜 手套 帽子 毯子")


def choice(chance: Chance) -> Unit:
    """你喜欢茶还是咖啡？ / Do you like tea or coffee?"""
    who = asked(chance)
    draw = chance.below(100)
    if draw < 50:
        kind = KINDS[chance.pick(_CHOICES)]
        first, second = (noun.many for noun in chance.shuffle(kind)[:2])
        return build(
            "{who} 喜欢#like {first} 还是#or {second} ？#end",
            f"{do(who.person)}~like {{who}} like#like {{first}} or#or {{second}} ?#end",
            who=who.subject,
            first=first,
            second=second,
            name="choice",
        )
    if draw < 80:
        first, second = (spot(place) for place in chance.shuffle(_pick_lands(chance))[:2])
        return build(
            "{who} 想#want 去#go {first} 还是#or {second} ？#end",
            f"{do(who.person)}~want {{who}} want#want to~go~want go#go to~go~first {{first}} "
            "or#or {second} ?#end",
            who=who.subject,
            first=first,
            second=second,
            name="choice",
        )
    noun = chance.deal(_CHOSEN)
    first = certain(chance, noun, "t") if chance.odds(0.5) else definite(chance, noun)
    zh, en = chance.pick((("大", "big"), ("新", "new")))
    other_zh, other_en = {"大": ("小", "small"), "新": ("旧", "old")}[zh]
    return build(
        f"{{thing}} 是~is {zh}#how 的~how 还是#or {other_zh}#else 的~else ？#end",
        f"{be(first.person)}#is~is~how {{thing}} {en}#how or#or {other_en}#else ?#end",
        thing=first,
        name="choice",
    )


_CHOICES = ("fruit", "vegetable", "snack", "drink", "subject", "sport", "language", "taste", "pet")

_CHOSEN = (*KINDS["container"], *KINDS["furniture"], *KINDS["car"], *KINDS["ridden"])


def _pick_lands(chance: Chance) -> tuple[Place, ...]:
    return COUNTRIES if chance.odds(0.6) else CITIES


def habit_question(chance: Chance) -> Unit:
    """你每天喝咖啡吗？ / Do you drink coffee every day?"""
    who = asked(chance)
    act = pastime(chance)
    return build(
        "{who} {time} {act} 吗~do ？#end",
        f"{do(who.person)}~do~act {{who}} {{act}} {{time}} ?#end",
        who=who.subject,
        time=chance.deal(HABIT),
        act=act.form("base"),
        name="habit_question",
    )


def is_it_so(chance: Chance) -> Unit:
    """他是老师，对吗？ / He is a teacher, right?"""
    who = asked(chance)
    if chance.odds(0.5):
        thing, how = described(chance)
        while thing.zh[0] in {"我", "我们"}:
            thing, how = described(chance)
        return build(
            "{thing} 很#very~is {how} ，#comma 对#right 吗~right ？#end",
            f"{{thing}} {be(thing.person)}~is~how very#very {{how}} ,#comma right#right ?#end",
            thing=thing,
            how=how,
            name="is_it_so",
        )
    act = state(chance)
    return build(
        "{who} {act} ，#comma 对#right 吗~right ？#end",
        "{who} {act} ,#comma right#right ?#end",
        who=who.subject,
        act=act.now(who.person),
        name="is_it_so",
    )
