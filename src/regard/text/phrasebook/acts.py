"""Acts: a verb with its object, in the tenses a sentence asks for."""

from dataclasses import dataclass

from regard.text.phrasebook.chance import Chance
from regard.text.phrasebook.grammar import NOTHING, Person, Unit, build
from regard.text.phrasebook.lexicon.nouns import Noun
from regard.text.phrasebook.lexicon.people import Named
from regard.text.phrasebook.lexicon.scenes import SCENES
from regard.text.phrasebook.lexicon.verbs import (
    ACTIONS,
    ACTIVITIES,
    DEALINGS,
    DEEDS,
    TURNS,
    Verb,
)
from regard.text.phrasebook.morphology import Form, do, present
from regard.text.phrasebook.noun_phrases import at, certain, definite, one, other


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
            "{verb}! 过~verb {object}",
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
    return Act(chance.pick(ACTIVITIES))


def turn(chance: Chance) -> Act:
    """Something that happens at a moment: 起床."""
    return Act(chance.pick(TURNS))


def habit(chance: Chance) -> Act:
    """Something done again and again, to things in general: 吃苹果, 游泳."""
    if chance.odds(0.4):
        return activity(chance)
    verb = chance.pick(ACTIONS)
    return Act(verb, chance.pick(verb.objects).many)


def deed(chance: Chance) -> Act:
    """Something done once to something particular: 丢一把钥匙."""
    verb = chance.pick(DEEDS)
    return Act(verb, certain(chance, chance.pick(verb.objects)))


def known_deed(chance: Chance) -> Act:
    """Something done to a thing already known: 修这台电脑."""
    verb = chance.pick(DEEDS)
    return Act(verb, definite(chance, chance.pick(verb.objects)))


def dealing(chance: Chance, subject: Named) -> Act:
    """Something done to somebody else: 帮助她."""
    return Act(chance.pick(DEALINGS), other(chance, subject).object)


def new_act(chance: Chance, subject: Named) -> Act:
    """Something that can have happened or can be planned."""
    draw = chance.pick(range(100))
    if draw < 55:
        return deed(chance)
    return activity(chance) if draw < 80 else dealing(chance, subject)


def scene(chance: Chance, *, single: bool) -> tuple[Act, Unit]:
    """Something done, and the place it is done at: 看书, 在图书馆.

    Args:
        chance: What decides.
        single: Whether an object is one thing, not things in general.
    """
    place, deeds = chance.pick(SCENES)
    verb, objects = chance.pick(deeds)
    act = Act(verb, _object(chance.pick(objects), single=single)) if objects else Act(verb)
    return act, at(place)


def _object(noun: Noun, *, single: bool) -> Unit:
    return one(noun) if single else noun.many
