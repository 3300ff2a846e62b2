"""People by pronoun or name."""

from dataclasses import dataclass

from tools.phrasebook.grammar import Person, Unit, word


@dataclass(frozen=True, slots=True)
class Named:
    """Somebody a sentence can be about.

    Attributes:
        zh: The Chinese words, joined.
        subject: As a subject: he.
        object: As an object: him.
        owner: As an owner: his. None if English says 's.
        person: What a verb agrees with.
        again: What English calls the subject when it comes a second time: he.
        hers: The owner standing alone, as in "a friend of hers". None if English says 's.
    """

    zh: str
    subject: Unit
    object: Unit
    owner: Unit | None
    person: Person
    again: str
    hers: str | None = None


_PERSONS: dict[str, Person] = {"1": "first", "3": "singular", "p": "plural"}


def _pronoun(line: str) -> Named:
    zh, subject, thing, owner, hers, who = line.split()
    person = _PERSONS[who]
    return Named(
        zh,
        word(zh, subject, person),
        word(zh, thing, person),
        word(zh, owner),
        person,
        subject,
        hers,
    )


def _name(line: str) -> Named:
    zh, again, en = line.split(maxsplit=2)
    return Named(zh, word(zh, en), word(zh, en), None, "singular", again)


def _lines(table: str) -> list[str]:
    return table.strip().splitlines()


PRONOUNS: tuple[Named, ...] = tuple(
    _pronoun(line)
    for line in _lines("""
        我 I me my mine 1
        你 you you your yours p
        他 he him his his 3
        她 she her her hers 3
        我们 we us our ours p
        他们 they them their theirs p
    """)
)

NAMES: tuple[Named, ...] = tuple(
    _name(line)
    for line in _lines("""
        小明 he Xiaoming
        小红 she Xiaohong
        小李 he Xiao Li
        王芳 she Wang Fang
        李伟 he Li Wei
        玛丽 she Mary
        汤姆 he Tom
        安娜 she Anna
        约翰 he John
        大卫 he David
        彼得 he Peter
        露西 she Lucy
        杰克 he Jack
        艾米 she Amy
    """)
)
