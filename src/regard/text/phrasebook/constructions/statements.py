"""Simple statements: what somebody likes, is, can do, does not do."""

from regard.text.phrasebook.acts import Act, activity, deed, habit, known_deed, new_act
from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import Unit, build
from regard.text.phrasebook.lexicon.adjectives import MOODS, QUALITIES, TRAITS
from regard.text.phrasebook.lexicon.nouns import KINDS
from regard.text.phrasebook.lexicon.places import CITIES, COUNTRIES
from regard.text.phrasebook.lexicon.verbs import FEELINGS, SPEAK, STATES, Verb
from regard.text.phrasebook.morphology import be, do, inflect
from regard.text.phrasebook.noun_phrases import certain, other, somebody, spot, this

_FOND = tuple(verb for verb in FEELINGS if verb.zh in {"爱", "喜欢", "想念"})


def _liking(chance: Chance) -> tuple[Verb, Unit]:
    """A lasting state towards things in general, or towards a country or city."""
    if chance.odds(0.35):
        return chance.pick(_FOND), spot(chance.pick((*COUNTRIES, *COUNTRIES, *CITIES)))
    verb = chance.pick(STATES)
    noun = chance.pick(verb.objects)
    if verb.zh in {"需要", "想要", "有"}:
        return verb, certain(chance, noun)
    return verb, noun.many


def plain(chance: Chance) -> Unit:
    """我爱中国 / I love China."""
    who = somebody(chance)
    if chance.odds(0.3):
        verb, thing = chance.pick(FEELINGS), other(chance, who).object
    else:
        verb, thing = _liking(chance)
    act = Act(verb, thing)
    return build("{who} {act}", "{who} {act}", who=who.subject, act=act.now(who.person),
                 name="plain")


def copula(chance: Chance) -> Unit:
    """他是医生 / He is a doctor."""
    who = somebody(chance)
    role = chance.pick(KINDS["role"])
    if who.person == "plural":
        return build("{who} 是#is {role}", "{who} are#is {role}", who=who.subject,
                     role=role.many, name="copula")
    return build("{who} 是#is {role}", f"{{who}} {be(who.person)}#is a~role {{role}}",
                 who=who.subject, role=role.one, name="copula")


def quality(chance: Chance) -> Unit:
    """这个苹果很甜 / This apple is very sweet."""
    zh, en = chance.pick((("很", "very"), ("很", "very"), ("非常", "extremely")))
    if chance.odds(0.6):
        who = somebody(chance)
        adjective = chance.pick((*TRAITS, *MOODS))
        subject = who.subject
    else:
        adjective = chance.pick(QUALITIES)
        subject = this(chance, chance.pick(adjective.things))
    return build(f"{{who}} {zh}#how~is {{adjective}}",
                 f"{{who}} {be(subject.person)}~is~adjective {en}#how {{adjective}}",
                 who=subject, adjective=adjective.plain, name="quality")


def negated_quality(chance: Chance) -> Unit:
    """这个问题不难 / This question is not difficult."""
    if chance.odds(0.5):
        adjective, subject = chance.pick((*TRAITS, *MOODS)), somebody(chance).subject
    else:
        adjective = chance.pick(QUALITIES)
        subject = this(chance, chance.pick(adjective.things))
    return build("{who} 不#no~is {adjective}",
                 f"{{who}} {be(subject.person)}~is~adjective not#no {{adjective}}",
                 who=subject, adjective=adjective.plain, name="negated_quality")


# Modal verbs that English says with a bare verb.
_MODALS = (("能", "can"), ("应该", "should"), ("必须", "must"), ("可以", "may"))
# And those it says with a verb and "to".
_WISHES = (("想", "want"), ("打算", "plan"), ("希望", "hope"), ("需要", "need"))


def modal(chance: Chance) -> Unit:
    """他应该休息 / He should rest."""
    who = somebody(chance)
    zh, en = chance.pick(_MODALS)
    return build(f"{{who}} {zh}#can {{act}}", f"{{who}} {en}#can {{act}}", who=who.subject,
                 act=new_act(chance, who).form("base"), name="modal")


def able(chance: Chance) -> Unit:
    """我会游泳 / I can swim; 他不会说法语 / He cannot speak French."""
    who = somebody(chance)
    act = chance.pick(_SKILLS)(chance)
    zh, en = chance.pick((("会#can", "can#can"), ("会#can", "can#can"), ("不~can 会#can", "cannot#can")))
    return build(f"{{who}} {zh} {{act}}", f"{{who}} {en} {{act}}", who=who.subject,
                 act=act.form("base"), name="able")


_SKILL_VERBS = frozenset("游泳 跳舞 唱歌 做饭 滑雪 滑冰 骑马 骑自行车 开车 弹钢琴 弹吉他 拉小提琴 下棋 踢足球 画画".split())


def _skill(chance: Chance) -> Act:
    while True:
        act = activity(chance)
        if act.verb.zh in _SKILL_VERBS:
            return act


def _speak(chance: Chance) -> Act:
    return Act(SPEAK, chance.pick(SPEAK.objects).one)


_SKILLS = (_skill, _speak)


def wish(chance: Chance) -> Unit:
    """他想买一把雨伞 / He wants to buy an umbrella."""
    who = somebody(chance)
    zh, en = chance.pick(_WISHES)
    en = inflect(en, "third") if who.person == "singular" else en
    return build(f"{{who}} {zh}#want {{act}}", f"{{who}} {en}#want to~act~want {{act}}",
                 who=who.subject, act=new_act(chance, who).form("base"), name="wish")


def unwilling(chance: Chance) -> Unit:
    """她不想洗碗 / She does not want to wash the dishes."""
    who = somebody(chance)
    return build("{who} 不#no~do 想#want {act}",
                 f"{{who}} {do(who.person)}~do~want not#no want#want to~act~want {{act}}",
                 who=who.subject, act=new_act(chance, who).form("base"), name="unwilling")


def refusal(chance: Chance) -> Unit:
    """他不喝咖啡 / He does not drink coffee."""
    who = somebody(chance)
    act = habit(chance) if chance.odds(0.4) else Act(*_liking(chance))
    return build("{who} {act}", "{who} {act}", who=who.subject, act=act.refused(who.person),
                 name="refusal")


def undone(chance: Chance) -> Unit:
    """他没买那本书 / He did not buy that book."""
    who = somebody(chance)
    act = known_deed(chance) if chance.odds(0.6) else activity(chance)
    return build("{who} {act}", "{who} {act}", who=who.subject, act=act.undone(), name="undone")


def perfective(chance: Chance) -> Unit:
    """他买了一本书 / He bought a book."""
    who = somebody(chance)
    return build("{who} {act}", "{who} {act}", who=who.subject, act=deed(chance).done(),
                 name="perfective")


def liking(chance: Chance) -> Unit:
    """我喜欢跑步 / I like running."""
    who = somebody(chance)
    zh, en = chance.pick((("喜欢", "like"), ("喜欢", "like"), ("讨厌", "hate"), ("爱", "love")))
    en = inflect(en, "third") if who.person == "singular" else en
    return build(f"{{who}} {zh}#like {{act}}", f"{{who}} {en}#like {{act}}", who=who.subject,
                 act=habit(chance).form("ing"), name="liking")
