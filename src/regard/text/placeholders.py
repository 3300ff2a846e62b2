"""Markup that a model need not read: each span of it is one sign, and is put back in the output."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.text.normalization import normalize
from regard.text.pieces import Piece, Span
from regard.text.tokenizer import Tokenizer

# What is taken over as it stands. reStructuredText: literals, roles, links, substitutions, names
# with a star on each side. XML and HTML: tags, comments and entities.
MARKUP = {
    "rst": re.compile(
        r"``[^`]+``"
        r"|:[A-Za-z][\w:+.-]*:`[^`]+`"
        r"|(?<![\w`:])`[^`]+`__?(?!\w)"
        r"|\|[A-Za-z][\w.-]*\|"
        r"|(?<![\w*\\])\*{1,2}[\w.]+\*{1,2}(?![\w*])"
    ),
    "xml": re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>|&#?\w+;"),
}
# Signs that stand for spans; text that holds one itself keeps it, and another one is taken.
SIGNS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


@dataclass(frozen=True, slots=True)
class HeldText:
    """A text with signs in the place of its markup.

    Attributes:
        text: What is read.
        spans: The span that each sign stands for.
        places: Where each character of it begins in the text that was given, and where that ends.
    """

    text: str
    spans: dict[str, str]
    places: list[int]


def hold(text: str, markup: str) -> HeldText:
    """The text with a sign for each span of markup.

    Signs are given in the order of the alphabet of what they stand for, so that a text and its
    translation have the same ones, in whatever order they say them. The same span has the same
    sign. What there is no sign left for stays.

    Args:
        text: Normalised.
        markup: A name in ``MARKUP``.

    Example:
        >>> held = hold("Use ``b`` or ``a``.", "rst")
        >>> held.text, held.spans
        ('Use ② or ①.', {'①': '``a``', '②': '``b``'})
        >>> hold("用 ``a`` 或 ``b``。", "rst").text
        '用 ① 或 ②。'
    """
    found = list(MARKUP[markup].finditer(text))
    free = [sign for sign in SIGNS if sign not in text]
    signs = dict(zip(sorted({one.group() for one in found}), free, strict=False))
    read, places, done = list[str](), list[int](), 0
    for one in found:
        if one.group() not in signs:
            continue
        read += [text[done : one.start()], signs[one.group()]]
        places += range(done, one.start() + 1)
        done = one.end()
    read.append(text[done:])
    places += range(done, len(text) + 1)
    return HeldText("".join(read), {sign: span for span, sign in signs.items()}, places)


def put_back(output: str, source: HeldText) -> str:
    """The output with the source's markup, each span as often as the source has it.

    A sign too many is left out; what lacks a sign goes to the end, in the source's order: a line
    of documentation that has a link in the wrong place is better than one that lost it.

    Example:
        >>> held = hold("Use ``b`` or ``a``.", "rst")
        >>> put_back("用 ①。", held), put_back("用 ② 或 ① 或 ①。", held)
        ('用 ``a``。 ``b``', '用 ``b`` 或 ``a`` 或。')
    """
    left = Counter(char for char in source.text if char in source.spans)
    made = list[str]()
    for part in re.split(f"( ?[{SIGNS}])", output):
        sign = part.strip()
        if sign not in source.spans:
            made.append(part)
        elif left[sign]:
            left[sign] -= 1
            made.append(part.replace(sign, source.spans[sign]))
    missing = [source.spans[sign] for sign in left.elements()]
    return " ".join(["".join(made), *missing]).strip() if missing else "".join(made)


def is_intact(output: str, source: str, markup: str) -> bool:
    """Whether an output holds the markup of its source, each span as often, and no other.

    Example:
        >>> is_intact("用 ``a``。", "Use ``a``.", "rst"), is_intact("用 a。", "Use ``a``.", "rst")
        (True, False)
    """
    there, here = (Counter(MARKUP[markup].findall(normalize(text))) for text in (source, output))
    return there == here


class PlaceholderTokenizer:
    """A tokenizer that reads each span of markup as one sign.

    It gives the signs, not the markup, back: see ``put_back``.

    Args:
        inner: What cuts text with signs in it.
        markup: A name in ``MARKUP``.
    """

    def __init__(self, inner: Tokenizer, markup: str) -> None:
        self.inner, self.markup = inner, markup
        self.pad_id, self.unk_id = inner.pad_id, inner.unk_id
        self.bos_id, self.eos_id = inner.bos_id, inner.eos_id

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""
        return self.inner.vocab_size

    @property
    def is_sampling(self) -> bool:
        """Whether a seed changes what ``encode_all`` gives."""
        return self.inner.is_sampling

    @property
    def names(self) -> list[str]:
        """Names of the ids."""
        return self.inner.names

    def encode(self, text: str) -> list[int]:
        """The ids of the text with signs."""
        return self.inner.encode(self.held(text).text)

    def encode_all(self, texts: Sequence[str], *, seed: int | None = None) -> list[list[int]]:
        """The ids of many texts."""
        return self.inner.encode_all([self.held(text).text for text in texts], seed=seed)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, with signs."""
        return self.inner.decode(ids)

    def decode_with_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """The text of ``ids`` and the place of each id in it."""
        return self.inner.decode_with_spans(ids)

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of ``normalize(text)``: the one with a sign stands where its markup does."""
        whole, held = normalize(text), self.held(text)
        found = []
        for piece in self.inner.pieces(held.text):
            start, end = held.places[piece.start], held.places[piece.end]
            shown = whole[start:end].strip() if set(piece.text) & held.spans.keys() else piece.text
            found.append(Piece(shown, piece.id, start, end))
        return found

    def held(self, text: str) -> HeldText:
        """``normalize(text)`` with signs."""
        return hold(normalize(text), self.markup)

    def save(self, folder: Path) -> None:
        """Write the inner tokenizer; ``pair.json`` beside it names the markup."""
        self.inner.save(folder)
