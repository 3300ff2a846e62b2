"""Simple statements: what somebody likes, is, can do, does not do."""

from tools.phrasebook.acts import (
    Act,
    activity,
    dealing,
    duty,
    event,
    habit,
    handling,
    known_deed,
    planned_act,
    scene,
)
from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import Unit, build
from tools.phrasebook.lexicon.adjectives import MOODS, PLACES_RATED, QUALITIES, TRAITS
from tools.phrasebook.lexicon.nouns import KINDS
from tools.phrasebook.lexicon.people import Named
from tools.phrasebook.lexicon.places import CITIES, COUNTRIES
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import FEELINGS, LIKINGS, SKILLS, SPEAK, WANTS
from tools.phrasebook.morphology import be, do, inflect
from tools.phrasebook.noun_phrases import certain, known, other, somebody, spot

_FOND = select(FEELINGS, "爱 喜欢 想念")
LANDS = (*COUNTRIES, *COUNTRIES, *CITIES)
_QUALIFIED = (*TRAITS, *MOODS)


def state(chance: Chance) -> Act:
    """A lasting state: 爱中国, 喜欢苹果."""
    if chance.odds(0.4):
        return Act(chance.deal(_FOND), spot(chance.deal(LANDS)))
    verb = chance.deal(LIKINGS)
    return Act(verb, chance.deal(verb.objects).many)


def feeling(chance: Chance, who: Named) -> Act:
    """What somebody feels for somebody else: 相信她."""
    return Act(chance.deal(FEELINGS), other(chance, who).object)


def plain(chance: Chance) -> Unit:
    """我爱中国 / I love China."""
    who = somebody(chance)
    act = state(chance) if chance.odds(0.65) else feeling(chance, who)
    return build(
        "{who} {act}", "{who} {act}", who=who.subject, act=act.now(who.person), name="plain"
    )


def want(chance: Chance) -> Unit:
    """她需要一副眼镜 / She needs a pair of glasses."""
    who = somebody(chance)
    verb = chance.deal(WANTS)
    act = Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))
    return build(
        "{who} {act}", "{who} {act}", who=who.subject, act=act.now(who.person), name="want"
    )


def copula(chance: Chance) -> Unit:
    """他是医生 / He is a doctor."""
    who = somebody(chance)
    role = chance.deal(KINDS["role"])
    if who.person == "plural":
        return build(
            "{who} 是#is {role}",
            "{who} are#is {role}",
            who=who.subject,
            role=role.many,
            name="copula",
        )
    return build(
        "{who} 是#is {role}",
        f"{{who}} {be(who.person)}#is a~role {{role}}",
        who=who.subject,
        role=role.one,
        name="copula",
    )


def described(chance: Chance) -> tuple[Unit, Unit]:
    """Somebody, something or a place, and what it may be like."""
    draw = chance.below(100)
    if draw < 55:
        return somebody(chance).subject, chance.deal(_QUALIFIED).plain
    if draw < 85:
        adjective = chance.deal(QUALITIES)
        return known(chance, chance.deal(adjective.things)), adjective.plain
    adjective, place = chance.deal(PLACES_RATED)
    return spot(place), adjective.plain


def is_having(adjective: Unit) -> bool:
    """Whether a Chinese adjective begins with 有 and is therefore not negated by 不: 有钱."""
    return adjective.zh[0].startswith("有")


def quality(chance: Chance) -> Unit:
    """这个苹果很甜 / This apple is very sweet."""
    zh, en = chance.pick((("很", "very"), ("很", "very"), ("非常", "extremely")))
    subject, adjective = described(chance)
    return build(
        f"{{who}} {zh}#how~is {{adjective}}",
        f"{{who}} {be(subject.person)}~is~adjective {en}#how {{adjective}}",
        who=subject,
        adjective=adjective,
        name="quality",
    )


def negated_quality(chance: Chance) -> Unit:
    """这个问题不难 / This question is not difficult."""
    subject, adjective = described(chance)
    while is_having(adjective):
        subject, adjective = described(chance)
    return build(
        "{who} 不#no~is {adjective}",
        f"{{who}} {be(subject.person)}~is~adjective not#no {{adjective}}",
        who=subject,
        adjective=adjective,
        name="negated_quality",
    )


def modal(chance: Chance) -> Unit:
    """他应该休息 / He should rest."""
    who = somebody(chance)
    zh, en = chance.pick((("应该", "should"), ("必须", "must"), ("不应该", "should not")))
    draw = chance.below(100)
    act = duty(chance) if draw < 50 else dealing(chance, who) if draw < 75 else known_deed(chance)
    return build(
        f"{{who}} {zh}#can {{act}}",
        f"{{who}} {en.replace(' ', '#can ')}#can {{act}}",
        who=who.subject,
        act=act.form("base"),
        name="modal",
    )


def able(chance: Chance) -> Unit:
    """我会游泳 / I can swim; 他不会说法语 / He cannot speak French."""
    who = somebody(chance)
    act = Act(chance.deal(SKILLS)) if chance.odds(0.6) else speaking(chance)
    zh, en = chance.pick((("会", "can"), ("会", "can"), ("不会", "cannot")))
    return build(
        f"{{who}} {zh}#can {{act}}",
        f"{{who}} {en}#can {{act}}",
        who=who.subject,
        act=act.form("base"),
        name="able",
    )


def speaking(chance: Chance) -> Act:
    """A language to speak: 说法语."""
    return Act(SPEAK, chance.deal(SPEAK.objects).one)


def permission(chance: Chance) -> Unit:
    """你可以用我的词典 / You can use my dictionary; 我们可以在公园骑马 / We can ride horses ..."""
    who = somebody(chance)
    zh, en = chance.pick((("可以", "can"), ("不能", "cannot"), ("能", "can")))
    act = handling(chance).form("base")
    if chance.odds(0.5):
        doing, where = scene(chance, single=False, abroad=False)
        act = build("{where} {act}", "{act} {where}", where=where, act=doing.form("base"))
    return build(
        f"{{who}} {zh}#can {{act}}",
        f"{{who}} {en}#can {{act}}",
        who=who.subject,
        act=act,
        name="permission",
    )


def wish(chance: Chance) -> Unit:
    """他想买一把雨伞 / He wants to buy an umbrella."""
    who = somebody(chance)
    zh, en = chance.pick((("想", "want"), ("打算", "plan"), ("希望", "hope")))
    en = inflect(en, "third") if who.person == "singular" else en
    return build(
        f"{{who}} {zh}#want {{act}}",
        f"{{who}} {en}#want to~act~want {{act}}",
        who=who.subject,
        act=planned_act(chance, who).form("base"),
        name="wish",
    )


def unwilling(chance: Chance) -> Unit:
    """她不想洗碗 / She does not want to wash the dishes."""
    who = somebody(chance)
    draw = chance.below(100)
    act = activity(chance) if draw < 45 else known_deed(chance)
    return build(
        "{who} 不#no~do 想#want {act}",
        f"{{who}} {do(who.person)}~do~want not#no want#want to~act~want {{act}}",
        who=who.subject,
        act=act.form("base"),
        name="unwilling",
    )


def refusal(chance: Chance) -> Unit:
    """他不喝咖啡 / He does not drink coffee."""
    who = somebody(chance)
    act = chance.pick((habit, state, state))(chance)
    return build(
        "{who} {act}", "{who} {act}", who=who.subject, act=act.refused(who.person), name="refusal"
    )


def undone(chance: Chance) -> Unit:
    """他没买那本书 / He did not buy that book."""
    who = somebody(chance)
    act = known_deed(chance) if chance.odds(0.6) else activity(chance)
    return build("{who} {act}", "{who} {act}", who=who.subject, act=act.undone(), name="undone")


def perfective(chance: Chance) -> Unit:
    """他买了一本书 / He bought a book."""
    who = somebody(chance)
    act = event(chance) if chance.odds(0.8) else dealing(chance, who)
    return build("{who} {act}", "{who} {act}", who=who.subject, act=act.done(), name="perfective")


def liking(chance: Chance) -> Unit:
    """我喜欢跑步 / I like running."""
    who = somebody(chance)
    zh, en = chance.pick((("喜欢", "like"), ("喜欢", "like"), ("讨厌", "hate"), ("爱", "love")))
    en = inflect(en, "third") if who.person == "singular" else en
    return build(
        f"{{who}} {zh}#like {{act}}",
        f"{{who}} {en}#like {{act}}",
        who=who.subject,
        act=habit(chance).form("ing"),
        name="liking",
    )
