"""Scripts and languages of texts, and evidence that one is spoilt: wrong encoding, markup."""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

# Scripts that one language mixes count as one.
_SAME = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "Han or kana")

# Scripts without spaces between words.
_UNSPACED_SCRIPTS = frozenset(
    ("Han or kana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
)


class _Scripts(dict[int, str]):
    def __missing__(self, code: int) -> str:
        char = chr(code)
        name = unicodedata.name(char, "").partition(" ")[0] if char.isalpha() else ""
        self[code] = _SAME.get(name, name.capitalize())
        return self[code]


_SCRIPTS = _Scripts()


def main_script(text: str) -> str:
    """The script of most letters; empty if there are none."""
    counts = _script_counts(text)
    return counts.most_common(1)[0][0] if counts else ""


def side_script(texts: Sequence[str]) -> str:
    """The script of most of ``texts``."""
    counts = Counter(script for text in texts if (script := main_script(text)))
    return counts.most_common(1)[0][0] if counts else ""


def length_unit(script: str) -> str:
    """Unit that ``split_words`` finds: words, or characters in a script without spaces."""
    return "characters" if script in _UNSPACED_SCRIPTS else "words"


def _script_counts(text: str) -> Counter[str]:
    return Counter(script for char in text if (script := _SCRIPTS[ord(char)]))


def misplaced(sources: Sequence[str], targets: Sequence[str]) -> dict[str, list[int]]:
    """Indices of pairs by the side in the other script: ``source``, ``target``, ``exchanged``."""
    indices: dict[str, list[int]] = {"exchanged": [], "source": [], "target": []}
    placed = list(zip(map(main_script, sources), map(main_script, targets), strict=True))
    # Counted by pairs: where half of them are exchanged, both sides have as much of each script.
    counts = Counter(filter(all, placed))
    scripts = max(counts, key=counts.__getitem__, default=("", ""))
    if scripts[0] == scripts[1]:
        return indices
    for index, pair in enumerate(zip(sources, targets, strict=True)):
        if placed[index] == scripts[::-1]:
            indices["exchanged"].append(index)
        elif pair[0] != pair[1]:
            for side, text, opposite in zip(("source", "target"), pair, scripts[::-1], strict=True):
                if set(_script_counts(text)) == {opposite}:
                    indices[side].append(index)
    return indices


# Languages of scripts that have one; of Han letters, unless there are kana.
_BY_SCRIPT = {
    "Han or kana": "zh",
    "Hangul": "ko",
    "Cyrillic": "ru",
    "Greek": "el",
    "Arabic": "ar",
    "Hebrew": "he",
    "Thai": "th",
    "Devanagari": "hi",
}
_KANA = re.compile("[\u3041-\u30ff]")
# Little words that no text of the language can do without.
_LITTLE_WORDS = {
    "de": "der die das und ist nicht ein eine ich sie mit auf zu den wir auch war",
    "en": "the a an of and is not i you to in it he she was that we this",
    "es": "el la los las que y es no un una yo en con por para está lo",
    "fr": "le la les des et est pas un une je vous dans que il elle nous ce",
    "it": "il lo gli che e è non un una io di con per sono della ha mi",
    "nl": "de het een en is niet ik je van met op te dat we hij zijn er",
    "pl": "nie się w na i z jest to że do jak tak co mnie tego",
    "pt": "o a os as que e é não um uma eu em com por para está ele",
    "sv": "och är inte en ett jag det på som med att han hon vi av för",
    "tr": "bir ve bu ne için çok ben sen o da de değil mi var",
}
_ENOUGH = 2000  # sentences
_WORD = re.compile(r"\w+")
# A share of little words below this is chance.
_LEAST_SHARE = 0.04
# Japanese text has kana in nearly every sentence; a Chinese one may quote a few.
_LEAST_KANA = 0.1


def guess_language(texts: Sequence[str]) -> str | None:
    """The code of the language of most texts; None without evidence."""
    sample = texts[:: max(1, len(texts) // _ENOUGH)]
    scripts = sum(map(_script_counts, sample), Counter[str]())
    if not scripts:
        return None
    script = scripts.most_common(1)[0][0]
    if sum(len(_KANA.findall(text)) for text in sample) > _LEAST_KANA * scripts.total():
        return "ja"
    return _by_words(sample) if script == "Latin" else _BY_SCRIPT.get(script)


def are_exchanged(
    sources: Sequence[str], targets: Sequence[str], languages: tuple[str | None, str | None]
) -> bool:
    """Whether the sides of pairs are each in the language of the other."""
    if None in languages or languages[0] == languages[1]:
        return False
    return (guess_language(targets), guess_language(sources)) == languages


def _by_words(texts: Sequence[str]) -> str | None:
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    shares = {
        language: sum(counts[word] for word in words.split()) / counts.total()
        for language, words in _LITTLE_WORDS.items()
    }
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= _LEAST_SHARE else None


# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then continuation bytes as those show them.
_CONTINUATION = "\u0080-\u00bf" + "".join(
    bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
)
_MISREAD_LATIN = re.compile(f"[\u00c2-\u00f4][{_CONTINUATION}]+")
_RUN = re.compile("[^\u0000-\u007f]{3,}")
_HAN_OR_KANA = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_REPLACED = re.compile("\ufffd|锟斤拷|烫烫烫|屯屯屯|ï¿½")
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[a-zA-Z]{2,8});")
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*(?: [^<>]*)?/?>")


def misreading(text: str) -> str | None:
    """Evidence that a text was decoded wrongly, as "'Ã¶' should be 'ö'"; None without."""
    if text.isascii():
        return None
    if match := _REPLACED.search(text):
        return f"{match[0]!r} stands for characters that were lost"
    for match in _MISREAD_LATIN.finditer(text):
        if meant := _as_utf8(match[0], "cp1252") or _as_utf8(match[0], "latin-1"):
            return f"{match[0]!r} should be {meant!r}"
    for match in _RUN.finditer(text):
        meant = _as_utf8(match[0], "gb18030")
        if meant and len(_HAN_OR_KANA.findall(meant)) == len(meant):
            return f"{match[0]!r} should be {meant!r}"
    return None


def stray_character(text: str) -> str | None:
    """The first control, private-use or unassigned character of a text, as U+0092."""
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        if unicodedata.category(char) in ("Cc", "Co", "Cn"):
            return f"U+{ord(char):04X}"
    return None


def markup(text: str) -> str | None:
    """The first HTML entity or tag in a text."""
    for pattern in (_ENTITY, _TAG):
        match = pattern.search(text)
        if match and (pattern is _TAG or html.unescape(match[0]) != match[0]):
            return match[0]
    return None


def _as_utf8(text: str, encoding: str) -> str | None:
    try:
        return text.encode(encoding).decode("utf-8")
    except UnicodeError:
        return None
