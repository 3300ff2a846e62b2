"""Encodings of text files, guessed where none is given.

The package charset-normalizer takes Western text for Windows-1250, and short Chinese for Korean.
"""

import codecs
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, combinations_with_replacement
from pathlib import Path

from regard.errors import DataError, SettingError

# The mark with which UTF-8 may begin.
MARK = codecs.BOM_UTF8
# Bytes that a line, or a file that is one value of JSON, stays below: they are read at once.
LONGEST = 1 << 29
# Bytes of a file by which its encoding is known.
_HEAD = 1 << 20
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Characters of a line in an encoding that was guessed, in messages.
_SHOWN = 20
# First bytes of files that are no text, and the cure for each.
_NO_TEXT = {
    b"PK\x03\x04": "a workbook or an archive. Save a workbook as CSV UTF-8, unpack an archive",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel's. Save it as CSV UTF-8",
    b"\x1f\x8b": "a file that gzip packed. Let its name end in .gz",
    b"%PDF-": "a PDF. Save its text",
    **dict.fromkeys((b"\xff\xd8\xff", b"\x89PNG"), "a picture. Write its pixels into .jsonl"),
}
# Bytes of a file by which its form is known.
_FIRST = 1 << 16
# The encoding of text that is not UTF-8; None guesses it.
_encoding: ContextVar[str | None] = ContextVar("encoding", default=None)

# The first bytes in GB 2312 of its 3,755 most used Han characters, and of its signs; and the share
# of a text's characters that are among them.
_COMMON_HAN = (*range(0xB0, 0xD8), *range(0xA1, 0xA4))
_MOST_COMMON = 0.7
# Syllables that no Korean text can do without, and their share in one; in GB 2312 they are rare.
_COMMON_HANGUL, _LEAST_HANGUL = "이다는을에의고지하한", 0.1
# Letters of Windows-1252 in Western languages, lower case: German, French, Spanish, Italian,
# Portuguese, Danish and Norwegian, Swedish; and their signs.
_LETTERS = ("äöü", "àâæçèéêëîïôœùûüÿ", "áéíñóúü", "àèéìíòóùú", "àáâãçéêíóôõúü", "åæéø", "äåéö")
_SIGNS = "‘’‚“”„–—…€£¥¢°«»‹›¿¡\xa0\xad§©®™•·±×÷½¼¾²³µ´¨†‰"
_SIGN_IN_WORD = re.compile(r"(?<=[a-z])[€£¥¢°«»¿¡§©®™±×÷½¼¾²³µ¨†‰¹º¬¦¸](?=[a-z])")
# The share of them in a Western text, and the lines that say that a file is one.
_LEAST_KNOWN, _LEAST_WESTERN = 0.97, 3


class GuessedEncodingWarning(UserWarning):
    """A file is not UTF-8; it is read in the encoding that it seems to be in."""


class TooLongError(Exception):
    """A line, or one value of JSON, is too long to be read whole."""


@contextmanager
def encoded_as(encoding: str | None) -> Iterator[None]:
    """Set the encoding of text that is not UTF-8 within the block; an outer block goes before."""
    try:
        name = None if encoding is None else codecs.lookup(encoding).name
        "".encode(name or "utf-8")
    except (LookupError, UnicodeError):
        raise SettingError(
            f"encoding must be one that Python knows, such as gb18030, big5, cp1252, utf-16; got "
            f"{encoding!r}."
        ) from None
    token = _encoding.set(_encoding.get() or name)
    try:
        yield
    finally:
        _encoding.reset(token)


def in_set_encoding(line: bytes) -> str | None:
    """A line in the encoding that ``encoded_as`` sets; None where it is not, or none is set."""
    encoding = _encoding.get()
    return line.decode(encoding) if encoding and _decodes(line, encoding) else None


def text_lines(lines: Iterable[bytes], name: str) -> tuple[list[bytes], Iterator[bytes]]:
    """The first lines of a file, and all, in UTF-8; DataError if it begins as no text does."""
    head, lines = peeked(lines, 1)
    for mark, kind in _NO_TEXT.items():
        if head and head[0].startswith(mark):
            raise DataError(f"{name} must be text; got {kind}.")
    return peeked(as_utf8(lines, name), _FIRST)


def as_utf8(lines: Iterable[bytes], name: str | None) -> Iterator[bytes]:
    """Recode a file's lines to UTF-8, each with its LF; ``name`` is for the warning, if any."""
    head, recoded = peeked(lines, _HEAD)
    encoding = _encoding_of(head, name)
    if encoding is not None and encoding.startswith(("utf-16", "utf-32")):
        recoded = split_lines(map(str.encode, codecs.iterdecode(recoded, encoding, "replace")))
    elif encoding is not None:
        recoded = (_recoded(line, encoding) for line in recoded)
    return _at_line_ends(recoded)


def peeked(lines: Iterable[bytes], size: int) -> tuple[list[bytes], Iterator[bytes]]:
    """The first lines, of ``size`` bytes or a few more, and all; an error comes after the lines."""
    head: list[bytes] = []
    lines = iter(lines)
    try:
        while size > 0:
            head.append(next(lines))
            size -= len(head[-1])
    except StopIteration:
        pass
    except Exception as error:
        return head, chain(head, _raising(error))
    return head, chain(head, lines)


def _raising(error: Exception) -> Iterator[bytes]:
    raise error
    yield b""


def _at_line_ends(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines; if all is one line, CR ends lines too."""
    first = next(lines, b"")
    if b"\r" in first.rstrip(b"\r\n") and (second := next(lines, None)) is None:
        yield from (line + b"\n" for line in first.rstrip(b"\r\n").split(b"\r"))
        return
    yield from filter(None, (first, second) if b"\r" in first.rstrip(b"\r\n") else (first,))
    yield from lines


def _encoding_of(head: list[bytes], name: str | None) -> str | None:
    """The encoding that a file which begins with these lines is to be read in; None is UTF-8."""
    chosen, sample = _encoding.get(), b"".join(head)
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if chosen is not None and chosen.startswith(("utf-16", "utf-32")):
        if 0 in sample or not all(_decodes(line, "utf-8") for line in head):
            return f"{chosen}-le" if chosen in ("utf-16", "utf-32") else chosen
        return None
    if sample.count(0) > len(sample) / 4:
        is_little = sample[1::2].count(0) > sample[::2].count(0)
        return "utf-16-le" if is_little else "utf-16-be"
    wrong = [line for line in head if not _decodes(line, "utf-8")]
    if chosen is not None and (wrong or sample.isascii()):
        return chosen
    if not wrong:
        return None
    right = sum(not line.isascii() for line in head) - len(wrong)
    guess = guess_encoding(b"".join(wrong))
    is_western = guess == "WINDOWS-1252" and not right and len(wrong) >= _LEAST_WESTERN
    if not is_western and (guess != "GB18030" or right > len(wrong) / 4):
        return None
    encoding = "cp1252" if is_western else "gb18030"
    if name is not None:
        text = wrong[0].decode(encoding, "replace").strip()
        first = next((index for index, char in enumerate(text) if not char.isascii()), 0)
        excerpt = text[max(0, first - _SHOWN // 2) :][:_SHOWN]
        warnings.warn(
            f"{name.removeprefix(f'{Path.cwd()}{os.sep}')} is not UTF-8; it is read as {guess}, "
            f"in which it has {excerpt!r}. If that is wrong, say which encoding it is: --encoding "
            "NAME.",
            GuessedEncodingWarning,
            stacklevel=4,
        )
    return encoding


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split pieces of a file into lines with their LF."""
    unfinished = b""
    for chunk in chunks:
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(unfinished) >= LONGEST:
            raise TooLongError
    if unfinished:
        yield unfinished


def _recoded(line: bytes, encoding: str) -> bytes:
    try:
        return line.decode(encoding).encode()
    except UnicodeError:
        return line


def guess_encoding(line: bytes) -> str | None:
    """Guess the encoding of a line that is not UTF-8; None without evidence."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if _decodes(line, "gb18030"):
        far = [char for char in line.decode("gb18030") if not char.isascii()]
        leads = [char.encode("gb2312", "replace")[0] for char in far]
        if sum(lead in _COMMON_HAN for lead in leads) >= _MOST_COMMON * len(leads) > 0:
            hangul = sum(char in _COMMON_HANGUL for char in line.decode("euc-kr", "replace"))
            return "EUC-KR" if hangul > _LEAST_HANGUL * len(leads) else "GB18030"
    beyond = sum(byte >= 0x80 for byte in line)
    if beyond > len(line) / 3 or not _decodes(line, "cp1252"):
        return None
    return "WINDOWS-1252" if _is_western(line.decode("cp1252")) else None


def _is_western(text: str) -> bool:
    """Whether nearly all that is not ASCII is of one or two Western languages, or their signs."""
    far = Counter(char for char in text.casefold() if not char.isascii())
    within = Counter(sign[0] for sign in _SIGN_IN_WORD.finditer(text))
    odd = (1 - _LEAST_KNOWN) * far.total()
    return within.total() <= odd + 1 and any(
        sum(far[char] for char in far.keys() - {*first, *second, *_SIGNS}) <= odd
        for first, second in combinations_with_replacement(_LETTERS, 2)
    )


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeError:
        return False
    return True
