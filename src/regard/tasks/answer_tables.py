"""Where answers are right, in tables: by what is asked, by what is answered."""

import re
from collections.abc import Mapping, Sequence

from regard.tasks.job import Table
from regard.text.normalization import has_unspaced, split_words

_ASKING = (
    *("how many", "how much", "how long", "how", "what", "which", "whose", "who", "when", "where"),
    *(
        "why",
        "多少",
        "几",
        "哪里",
        "哪儿",
        "何处",
        "何时",
        "什么时候",
        "什么时间",
        "为什么",
        "为何",
    ),
    *("如何", "怎么", "怎样", "谁", "哪", "什么", "何"),
)
_ASKED = re.compile("|".join(rf"\b{w}\b" if w.isascii() else w for w in _ASKING))
# Words of a clause rather than of a name or a phrase; characters, of unspaced text.
_CLAUSE, _UNSPACED_CLAUSE = 6, 10


def question_word(question: str) -> str:
    """The word that asks.

    Example:
        >>> question_word("In what year did how many leave?"), question_word("泡泡堂是谁开发的？")
        ('what', '谁')
    """
    found = _ASKED.search(question.lower())
    return "other" if found is None else found[0]


def kind_of_answer(answer: str) -> str:
    """What an answer looks like: ``none``, a ``number``, a ``name``, a ``phrase`` or a ``clause``.

    Example:
        >>> [kind_of_answer(each) for each in ("250,000", "Ann Lee", "the black cat", "")]
        ['number', 'name', 'phrase', 'none']
    """
    words = [word.strip() for word in split_words(" ".join(answer.split()))]
    words = [word for word in words if any(char.isalnum() for char in word)]
    if not words:
        return "none"
    if len(words) > (_UNSPACED_CLAUSE if has_unspaced(answer) else _CLAUSE):
        return "clause"
    if any(char.isdigit() for char in answer):
        return "number"
    return "name" if all(word[0].isupper() for word in words) else "phrase"


def by_group(
    title: str,
    groups: Sequence[str],
    scores: Mapping[str, Sequence[float]],
    *,
    ordered: bool = False,
) -> Table:
    """The mean of each score, in percent, over the examples of each group.

    Args:
        title: What groups them.
        groups: The group of each example.
        scores: From 0 to 1, one an example, by name.
        ordered: Whether groups begin with numbers that order them; else the largest comes first.

    Example:
        >>> by_group("word", ["who", "how", "who"], {"F1": [1.0, 0.0, 0.5]}).rows
        (('who', 75.0, 2), ('how', 0.0, 1))
    """
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)

    def key(group: str) -> tuple[int, str]:
        digits = re.match(r"\d+", group)
        return (int(digits[0]) if ordered and digits else -len(places[group])), group

    rows: list[tuple[str | int | float, ...]] = []
    for group in sorted(places, key=key):
        inside = places[group]
        means = (100 * sum(each[i] for i in inside) / len(inside) for each in scores.values())
        rows.append((group, *means, len(inside)))
    return Table(f"by {title}", (title, *scores, "count"), tuple(rows))


def length_group(length: int) -> str:
    """The range of lengths that one is in, for ``by_group``.

    Example:
        >>> length_group(500), length_group(501), length_group(9999)
        ('1-500', '501-1000', '2001+')
    """
    for low, high in ((1, 500), (501, 1000), (1001, 2000)):
        if length <= high:
            return f"{low}-{high}"
    return "2001+"
