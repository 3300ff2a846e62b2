"""Numbers of the records, quoted in sentences: none is typed by hand, and none goes stale.

A sentence writes ``{name.cell[place]}`` for a number of a figure: the figure of that name, a cell
of it (``what``, ``ours``, ``beside`` or ``note``), and which number of the cell, from zero.
"""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

# As people write it; not the 1 of F1, and not a version such as 2.3.0.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?(?!\.?\d)")
_RELATIONS = {"<": operator.lt, ">": operator.gt}


class QuoteError(ValueError):
    """A sentence and the records do not fit each other."""


class NotMeasuredError(QuoteError):
    """A sentence quotes a record that there is not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """The numbers of each cell of a figure, in their order and as they are written."""

    what: tuple[str, ...]
    ours: tuple[str, ...]
    beside: tuple[str, ...]
    note: tuple[str, ...]

    @classmethod
    def of(cls, figure: Mapping[str, str]) -> Self:
        """The numbers of a record's figure."""
        return cls(**{cell: tuple(_NUMBER.findall(figure[cell])) for cell in cls.__slots__})


def find(records: Sequence[Mapping[str, Any]], place: str) -> list[Mapping[str, str]]:
    """The figures at a place: ``record``, or ``record: words & words`` for those that have all.

    The words are looked for in ``what | beside | note``.
    """
    name, _, words = place.partition(": ")
    return [
        figure
        for record in records
        if record["name"] == name
        for figure in record["figures"]
        if _has_all(" | ".join(figure[cell] for cell in ("what", "beside", "note")), words)
    ]


def _has_all(text: str, words: str) -> bool:
    return all(each in text for each in words.split(" & "))


def numbers(records: Sequence[Mapping[str, Any]], places: Mapping[str, str]) -> dict[str, Numbers]:
    """The numbers of the figure at each place of a record there is."""
    found, names = {}, {record["name"] for record in records}
    for name, place in places.items():
        if place.partition(":")[0] not in names:
            continue
        figures = find(records, place)
        if len(figures) != 1:
            raise QuoteError(f"{place!r} must mean one figure; the records have {len(figures)}.")
        found[name] = Numbers.of(figures[0])
    return found


def say(sentence: str, quoted: Mapping[str, Numbers], *, holds: Sequence[str] = ()) -> str:
    """A sentence with its numbers."""
    for claim in holds:
        one, relation, other = _filled(claim, quoted).replace(",", "").split()
        if not _RELATIONS[relation](float(one), float(other)):
            raise QuoteError(f"{claim} no longer holds ({one}, {other}). Rewrite: {sentence}")
    return " ".join(_filled(sentence, quoted).split())


def _filled(sentence: str, quoted: Mapping[str, Numbers]) -> str:
    try:
        return sentence.format_map(quoted)
    except KeyError as missing:
        raise NotMeasuredError(f"no record has {missing}: {sentence}") from None
    except IndexError as missing:
        raise QuoteError(f"a number is not in the records ({missing}): {sentence}") from None
