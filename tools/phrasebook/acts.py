"""Acts: a verb with its object, in the tenses a sentence asks for."""

from dataclasses import dataclass

from tools.phrasebook.chance import Chance
from tools.phrasebook.grammar import NOTHING, Person, Unit, build
from tools.phrasebook.lexicon.people import Named
from tools.phrasebook.lexicon.scenes import SCENES, Scene
from tools.phrasebook.lexicon.selection import select
from tools.phrasebook.lexicon.verbs import (
    ACCIDENTS,
    ACTIONS,
    ACTIVITIES,
    DEALINGS,
    DEEDS,
    DUTIES,
    LEISURE,
    MILESTONES,
    OUTBURSTS,
    Verb,
)
from tools.phrasebook.morphology import Form, do, present
from tools.phrasebook.noun_phrases import (
    CHILDREN,
    ELDERS,
    PARENTS,
    at,
    certain,
    definite,
    one,
    other,
)


@dataclass(frozen=True, slots=True)
class Act:
    """A verb and its object, if it takes one."""

    verb: Verb
    object: Unit = NOTHING

    def form(self, form: Form) -> Unit:
        """Without any sign of aspect in Chinese: 看这本书 / reading this book."""
        return build(
            "{verb}! {object}", "{verb}! {object}", verb=self.verb.forms[form], object=self.object
        )

    def now(self, person: Person) -> Unit:
        """In the simple present: 看小说 / reads novels."""
        return self.form(present(person))

    def done(self) -> Unit:
        """看了这本书 / read this book; 睡觉了 / slept."""
        return build(
            "{verb}! 了~verb {object}",
            "{verb}! {object}",
            verb=self.verb.forms["past"],
            object=self.object,
        )

    def once(self) -> Unit:
        """看过这本书 / read this book, as in "I have read"."""
        return build(
            "{verb}! 过~verb! {object}",
            "{verb}! {object}",
            verb=self.verb.forms["participle"],
            object=self.object,
        )

    def refused(self, person: Person) -> Unit:
        """不喝茶 / does not drink tea."""
        return build(
            "不#no~do {verb}! {object}",
            f"{do(person)}~do~verb not#no {{verb}}! {{object}}",
            verb=self.verb.forms["base"],
            object=self.object,
        )

    def undone(self) -> Unit:
        """没看这本书 / did not read this book."""
        return build(
            "没#no~do {verb}! {object}",
            "did~do~verb not#no {verb}! {object}",
            verb=self.verb.forms["base"],
            object=self.object,
        )


def activity(chance: Chance) -> Act:
    """Something to do that takes no object: 游泳."""
    return Act(chance.deal(ACTIVITIES))


def leisure(chance: Chance) -> Act:
    """Something one does for pleasure: 跳舞."""
    return Act(chance.deal(LEISURE))


def duty(chance: Chance) -> Act:
    """Something one may have to do: 写作业."""
    return Act(chance.deal(DUTIES))


def general(chance: Chance) -> Act:
    """Something done to things in general: 吃苹果."""
    verb = chance.deal(ACTIONS)
    return Act(verb, chance.deal(verb.objects).many)


def habit(chance: Chance) -> Act:
    """Something done again and again: 吃苹果, 游泳."""
    return Act(chance.deal(_HABITS)) if chance.odds(0.4) else general(chance)


_HABITS = (
    *LEISURE,
    *select(DUTIES, "工作 做饭 锻炼 写作业 学习 打扫房间 洗衣服 洗碗 开会 上课 开车"),
)


def deed(chance: Chance) -> Act:
    """Something done once, on purpose, to something particular: 买一把雨伞."""
    verb = chance.deal(DEEDS)
    return Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))


def event(chance: Chance) -> Act:
    """Something done or befallen: 丢了一把钥匙."""
    if chance.odds(0.75):
        return deed(chance)
    verb = chance.deal(ACCIDENTS)
    return Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))


def known_deed(chance: Chance, verbs: tuple[Verb, ...] | None = None) -> Act:
    """Something done to a thing already known: 修这台电脑."""
    verb = chance.deal(KNOWN_DEEDS if verbs is None else verbs)
    noun = chance.deal(verb.objects)
    return Act(verb, definite(chance, noun) if "o" in verb.manners else certain(chance, noun, "t"))


KNOWN_DEEDS = tuple(verb for verb in DEEDS if set(verb.manners) & {"t", "o"})


def handling(chance: Chance) -> Act:
    """Something done with a thing one has at hand: 用这本词典."""
    verb = chance.deal(_HANDLINGS)
    return Act(verb, definite(chance, chance.deal(verb.objects)))


_HANDLINGS = tuple(verb for verb in select(DEEDS, "借 打开 用 看 修 检查") if verb.objects)


def favor(chance: Chance) -> Act:
    """Something one may be asked to do: 修这台电脑."""
    verb = chance.deal(_FAVORS)
    return Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))


_FAVORS = select(DEEDS, "寄 带 打开 搬 买 写 画 修 洗 做 选 翻译 检查 种 找")


def dealing(chance: Chance, subject: Named, verbs: tuple[Verb, ...] = DEALINGS) -> Act:
    """Something done to somebody else: 帮助她."""
    return Act(chance.deal(verbs), other(chance, subject).object)


def pastime(chance: Chance) -> Act:
    """Something anybody may do on any day: 喝茶, 打篮球, 买苹果."""
    if chance.odds(0.5):
        return leisure(chance)
    verb = chance.deal(_DAILY_VERBS)
    return Act(verb, chance.deal(verb.objects).many)


_DAILY_VERBS = select(ACTIONS, "吃 喝 买 打 听 做 画 写")


def appointment(chance: Chance) -> Act:
    """Something one puts a date on: 参加一个会议."""
    verb = chance.deal(_DATED)
    return Act(verb, certain(chance, chance.deal(verb.objects), verb.manners))


_DATED = select(DEEDS, "参加 卖 买 修 搬 看 种")


def milestone(chance: Chance, who: Named) -> Act:
    """What happens once in a life, at an age that suits the person: 毕业."""
    if who in ELDERS or who in PARENTS:
        return Act(chance.deal(_LATE))
    return Act(chance.deal(_EARLY if who in CHILDREN else MILESTONES))


_LATE = select(MILESTONES, "退休 搬家")
_EARLY = select(MILESTONES, "毕业 结婚 搬家")


def past_act(chance: Chance, subject: Named) -> Act:
    """Something that can have happened."""
    draw = chance.below(100)
    if draw < 55:
        return event(chance)
    if draw < 60:
        return Act(chance.deal(_OUTBURSTS))
    return activity(chance) if draw < 80 else dealing(chance, subject)


_OUTBURSTS = select(OUTBURSTS, "哭 笑")


def planned_act(chance: Chance, subject: Named) -> Act:
    """Something somebody can want or plan to do."""
    draw = chance.below(100)
    if draw < 50:
        return deed(chance)
    return leisure(chance) if draw < 80 else dealing(chance, subject, _PLANNED)


# Nobody plans to forgive at a set time.
_PLANNED = tuple(verb for verb in DEALINGS if verb.zh != "原谅")


def scene(chance: Chance, *, single: bool, abroad: bool = True) -> tuple[Act, Unit]:
    """Something done, and the place it is done at: 看书, 在图书馆.

    Args:
        chance: What decides.
        single: Whether an object is one thing, not things in general.
        abroad: Whether the place may be a country or city.
    """
    return _scene(chance, SCENES if abroad else _NEAR, single=single)


def scene_abroad(chance: Chance) -> tuple[Act, Unit]:
    """Something done, and the country or city it is done in: 学习法律, 在美国."""
    return _scene(chance, _ABROAD, single=False)


_NEAR = tuple(scene for scene in SCENES if not scene[0].is_land)
_ABROAD = tuple(scene for scene in SCENES if scene[0].is_land)


def _scene(chance: Chance, scenes: tuple[Scene, ...], *, single: bool) -> tuple[Act, Unit]:
    place, deeds = chance.deal(scenes)
    verb, objects = chance.deal(deeds)
    if not objects:
        return Act(verb), _placed(at(place))
    noun = chance.deal(objects)
    return Act(verb, one(noun) if single else noun.many), _placed(at(place))


def _placed(where: Unit) -> Unit:
    return build("{where}!", "{where}!", where=where, name="place")
