"""People that can be named: pronouns, and names that are the same as subject and as object."""

from dataclasses import dataclass

from regard.text.phrasebook.grammar import Person, Unit, word


@dataclass(frozen=True, slots=True)
class Named:
    """A pronoun or a name.

    Attributes:
        zh: The Chinese word.
        subject: As a subject: he.
        object: As an object: him.
        owner: As an owner, without 的: his. None for a name, which takes 's.
        person: What a verb agrees with.
    """

    zh: str
    subject: Unit
    object: Unit
    owner: Unit | None
    person: Person


def _pronoun(line: str) -> Named:
    zh, subject, obj, owner, person = line.split()
    agreement: Person = "first" if person == "1" else "singular" if person == "3" else "plural"
    return Named(
        zh, word(zh, subject, agreement), word(zh, obj, agreement), word(zh, owner), agreement
    )


def _name(line: str) -> Named:
    zh, en = line.split(maxsplit=1)
    return Named(zh, word(zh, en), word(zh, en), None, "singular")


def _lines(table: str) -> list[str]:
    return table.strip().splitlines()


PRONOUNS: tuple[Named, ...] = tuple(
    _pronoun(line)
    for line in _lines("""
        我 I me my 1
        你 you you your p
        他 he him his 3
        她 she her her 3
        我们 we us our p
        他们 they them their p
    """)
)

NAMES: tuple[Named, ...] = tuple(
    _name(line)
    for line in _lines("""
        小明 Xiaoming
        小红 Xiaohong
        小李 Xiao Li
        王芳 Wang Fang
        李伟 Li Wei
        玛丽 Mary
        汤姆 Tom
        安娜 Anna
        约翰 John
        大卫 David
        彼得 Peter
        露西 Lucy
        杰克 Jack
        艾米 Amy
    """)
)

BY_ZH: dict[str, Named] = {named.zh: named for named in (*PRONOUNS, *NAMES)}
