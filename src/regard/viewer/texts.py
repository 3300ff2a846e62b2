"""A text and its tokens: where each stands, whatever a tokenizer tells of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from regard.errors import DataError
from regard.viewer.example import Token

# How tokenizers write a space before a token: SentencePiece, and byte-level BPE.
_SPACES = "▁Ġ"
_CONTROLS = frozenset("\n\r\t")
_CONTINUES = "##"  # BERT's sign of a piece that goes on from the one before
_SIGN = re.compile(r"^(?:<[^<>\s]+>|\[[A-Z]+\])$")  # <s>, </s>, <|endoftext|>, [CLS]
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text and its tokens.

    Attributes:
        text: The text as it was read or written.
        tokens: Its tokens in order.

    Example:
        >>> given = Text.of(["▁The", "▁do", "g"])
        >>> given.text, [given.text[token.start : token.end] for token in given.tokens]
        ('The dog', ['The', 'do', 'g'])
    """

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(
        cls,
        pieces: Sequence[str],
        text: str | None = None,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> "Text":
        """Make a text from the pieces of a tokenizer.

        With ``spans`` (the ``offset_mapping`` of a Hugging Face tokenizer) a token is shown by the
        characters of its span, which are readable where pieces are bytes; of several pieces of one
        character each says which it is: 北 1/3. Without them it is looked for in the text, from the
        end of the token before. Without the text, that is put together from the pieces: ``▁`` and
        ``Ġ`` are spaces, ``##`` goes on; pieces without any such mark have spaces between them, but
        not between Chinese or Japanese characters.

        Args:
            pieces: The tokens as the tokenizer names them.
            text: The text that was tokenized.
            spans: First character, and one past the last, of each token in ``text``.

        Raises:
            DataError: There are not as many spans as pieces, or spans without a text.

        Example:
            >>> Text.of(["[CLS]", "play", "##ing"]).tokens[2]
            Token(text='##ing', start=4, end=7)
        """
        if spans is not None:
            if text is None or len(spans) != len(pieces):
                raise DataError(
                    f"spans must be one for each of {len(pieces)} pieces of a text; got "
                    f"{len(spans)}{' and no text' if text is None else ''}."
                )
            suffixes = _suffixes(pieces, text, spans)
            pieces_in_order = zip(pieces, spans, suffixes, strict=True)
            return cls(text=text, tokens=tuple(_token(*one, text) for one in pieces_in_order))
        return _joined(pieces) if text is None else _located(pieces, text)


def in_one_line(text: str, longest: int = 60) -> str:
    """Return the beginning of a text, in one line of so many characters.

    Example:
        >>> in_one_line("I  see you", 6)
        'I see…'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def text_of(tokens: "Text | Sequence[str]") -> Text:
    """Return a text as it is, or from pieces alone."""
    return tokens if isinstance(tokens, Text) else Text.of(tokens)


def _token(piece: str, span: tuple[int, int], suffix: str, text: str) -> Token:
    # A space is better known by the tokenizer's name for it; an end of a line is not.
    start, end = span
    written = text[start:end]
    is_legible = bool(written.strip()) or bool(_CONTROLS.intersection(written))
    return Token(text=f"{written}{suffix}" if is_legible else piece, start=start, end=end)


def _suffixes(pieces: Sequence[str], text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Number each token among those of one position, such as " 1/3"; else empty."""
    suffixes = [""] * len(pieces)
    for (start, end), group in groupby(range(len(pieces)), key=lambda n: tuple(spans[n])):
        # A space of its own, or a piece that says it all, is no part of a character.
        inside = [n for n in group if start < end and _bare(pieces[n]) not in ("", text[start:end])]
        for number, n in enumerate(inside if len(inside) > 1 else (), start=1):
            suffixes[n] = f" {number}/{len(inside)}"
    return suffixes


def _joined(pieces: Sequence[str]) -> Text:
    is_marked = any(piece.startswith(tuple(_SPACES)) for piece in pieces)
    text, tokens = "", []
    for piece in pieces:
        bare = _bare(piece)
        if text and _has_gap(piece, text[-1], is_marked):
            text += " "
        start = len(text)
        text += bare
        tokens.append(Token(text=piece, start=start, end=len(text)))
    return Text(text=text, tokens=tuple(tokens))


def _has_gap(piece: str, before: str, is_marked: bool) -> bool:
    bare = _bare(piece)
    if not bare or before.isspace() or piece.startswith(_CONTINUES):
        return False
    if is_marked:
        return piece[0] in _SPACES
    return not (_UNSPACED.match(before) and _UNSPACED.match(bare))


def _located(pieces: Sequence[str], text: str) -> Text:
    tokens, at = [], 0
    for piece in pieces:
        bare = _bare(piece)
        start = text.find(bare, at) if bare else -1
        if start < 0:
            start = at
        else:
            at = start + len(bare)
        tokens.append(Token(text=piece, start=start, end=at))
    return Text(text=text, tokens=tuple(tokens))


def _bare(piece: str) -> str:
    """The characters of a piece that are text."""
    if _SIGN.match(piece):
        return ""
    bare = piece.removeprefix(_CONTINUES) if len(piece) > len(_CONTINUES) else piece
    return bare.lstrip(_SPACES) if bare.strip(_SPACES) else ""
