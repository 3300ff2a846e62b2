"""The phrasebook: 40,000 Chinese-English sentence pairs with gold word alignments.

A grammar of both languages wrote them; ``docs/phrasebook.md`` in the repository is their card. They
come as one file, ``phrasebook.tsv.xz``, that carries its own SHA-256. A line is a pair: its split,
both sentences, the sure links, the other possible ones, the constructions of the sentence. Words
are separated by spaces, and by a bar where the sentence has none::

    train	我|爱|中国|。	I love China|.	0-0 1-1 2-2 3-3		plain

A fifth split, ``everyday``, has 10,000 short sentences more, of the same words and without links.
"""

import lzma
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from regard.checks import choose
from regard.errors import DataError

Split = Literal["train", "valid", "test", "new", "everyday"]
Span = tuple[int, int]
Link = tuple[int, int]

FILE = Path(__file__).with_name("phrasebook.tsv.xz")
HANDWRITTEN = Path(__file__).with_name("handwritten.tsv")

_WORD_AND_GAP = re.compile("([^| ]+)([| ]?)")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence in both languages with its gold word alignment."""

    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]
    constructions: tuple[str, ...]
    references: tuple[str, ...]


def phrases(split: Split) -> list[Phrase]:
    """The pairs of one split; ``new`` has combinations that no other has, ``everyday`` no links."""
    choose("split", split, dict.fromkeys(get_args(Split)))
    return list(_read(split))


def handwritten() -> list[Phrase]:
    """Forty sentences of the phrasebook's words, by the authors, with right translations."""
    lines = HANDWRITTEN.read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    empty: frozenset[Link] = frozenset()
    return [Phrase(row[0], row[1], (), (), empty, empty, (), tuple(row[1:])) for row in rows]


@cache
def _read(split: Split) -> tuple[Phrase, ...]:
    """The pairs of one split, read once per process."""
    lines = _contents(FILE).splitlines()
    return tuple(_phrase(line) for line in lines if line.startswith(f"{split}\t"))


def _contents(path: Path) -> str:
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise _damaged(path, str(error)) from error
    if not text:
        raise _damaged(path, "it is empty")
    return text


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} must be the phrasebook as it was installed; {reason.rstrip('.')}. Install regard "
        "again: pip install --force-reinstall --no-deps regard; in a checkout: git restore it."
    )


def _phrase(line: str) -> Phrase:
    _, source, target, sure, possible, constructions = line.split("\t")
    text = target.replace("|", "")
    return Phrase(
        source=source.replace("|", ""),
        target=text,
        source_words=_spans(source),
        target_words=_spans(target),
        sure=_links(sure),
        possible=_links(sure) | _links(possible),
        constructions=tuple(constructions.split()),
        references=(text,),
    )


def _spans(marked: str) -> tuple[Span, ...]:
    """The spans of a sentence's words without its bars."""
    spans, start = [], 0
    for word, gap in _WORD_AND_GAP.findall(marked):
        spans.append((start, start + len(word)))
        start += len(word) + (gap == " ")
    return tuple(spans)


def _links(column: str) -> frozenset[Link]:
    return frozenset(map(_link, column.split()))


@cache
def _link(text: str) -> Link:
    source, _, target = text.partition("-")
    return int(source), int(target)
