"""Normalization of text before counting or encoding; words and characters of it."""

import re
import unicodedata
from itertools import accumulate, pairwise

from regard.errors import DataError, excerpt

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# Scripts that put no space between words: Thai, Lao, Tibetan, Burmese, Khmer, kana, bopomofo, Han.
UNSPACED = (
    "[\u0e01-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff]"
)
_UNSPACED = re.compile(UNSPACED)

_UNSPACED_RUN = re.compile(f"{_UNSPACED.pattern}+")

# The white space of ``normalize``, and texts for which ``opens_with_word`` is true, for libraries
# that know neither: patterns of Oniguruma's, whose letters and numbers are those of isalnum().
WHITE_SPACE = "[\t-\r\x1c-\x20\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
OPENS_WITH_WORD = rf"\A(?=[\p{{L}}\p{{N}}])(?![\s\S]*{_UNSPACED.pattern})"


def normalize(text: str) -> str:
    r"""``text`` without outer white space, every inner run of white space being one plain space.

    White space is as Unicode defines it: a no-break space, a tab and the ideographic space too.
    Nothing else changes, case and full-width punctuation least of all. Half a surrogate pair, which
    only broken JSON holds, becomes U+FFFD. This is the text that tokenizers give back exactly.

    Raises:
        DataError: It is no text.

    Example:
        >>> normalize("  I\u00a0 love\tChina. ")
        'I love China.'
        >>> normalize("我爱\u3000中国，真的！")
        '我爱 中国，真的！'
    """
    if not isinstance(text, str):
        raise DataError(f"text must be a text; got {excerpt(text)}.")
    collapsed = " ".join(text.split())
    return collapsed if collapsed.isascii() else _LONE_SURROGATE.sub("\ufffd", collapsed)


def has_unspaced(text: str) -> bool:
    """Whether any character belongs to a script written without spaces between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def unspaced_runs(text: str) -> list[tuple[int, int]]:
    """Start and end of each run of characters of unspaced scripts."""
    return [] if text.isascii() else [run.span() for run in _UNSPACED_RUN.finditer(text)]


def opens_with_word(text: str) -> bool:
    """Whether a tokenizer reads the text as if a space stood before it."""
    return bool(text) and text[0].isalnum() and not has_unspaced(text)


class _Kinds(dict[int, str]):
    def __missing__(self, code: int) -> str:
        self[code] = _kind(chr(code))
        return self[code]


def _kind(char: str) -> str:
    category = unicodedata.category(char)
    if category.startswith("M"):
        return "m"
    if category.startswith("N") and not _UNSPACED.match(char):
        return "d"
    if category.startswith(("L", "N")):
        return "c" if _UNSPACED.match(char) else "a"
    return {" ": "s", "'": "q", "’": "q"}.get(char, "o")


_KINDS = _Kinds()

# A word, a number or one other mark, each with the space before it; or one unspaced character.
_WORD = re.compile(r"s?(?:a[am]*(?:qa[am]*)*|d[dm]*|[oq]m*)|cm*|m+|s")
# The same of ASCII, read as it is: in a fifth of the time.
_ASCII_WORD = re.compile(r" ?(?:[A-Za-z]+(?:'[A-Za-z]+)*|[0-9]+|[^A-Za-z0-9 ])| ")


def split_words(text: str) -> list[str]:
    """Split a normalised text into words, numbers, marks and unspaced characters, spaces kept."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    ends = [0, *accumulate(map(len, _WORD.findall(text.translate(_KINDS))))]
    return [text[start:end] for start, end in pairwise(ends)]


def word_spans(text: str, position: int = 0) -> list[tuple[int, int]]:
    """Spans of the words of ``split_words`` without spaces, in a text that begins at a position."""
    spans = []
    for word in split_words(text):
        start, position = position + len(word) - len(word.lstrip(" ")), position + len(word)
        if start < position:
            spans.append((start, position))
    return spans
