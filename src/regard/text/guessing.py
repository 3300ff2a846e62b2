"""Language identification by script and most frequent words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice

# Letters that say which language, where a script has one language or a letter only one.
_BY_SCRIPT = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "HANGUL": "ko",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "ARABIC": "ar",
    "HEBREW": "he",
    "THAI": "th",
    "DEVANAGARI": "hi",
}
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
    """The code of the language that most of ``texts`` are in; None where nothing speaks for one.

    Example:
        >>> guess_language(["我爱中国。"]), guess_language(["I am not in the house."])
        ('zh', 'en')
        >>> guess_language(["xq zzkt"]) is None
        True
    """
    step = max(1, len(texts) // _ENOUGH)
    sample = list(islice(texts, 0, None, step))
    scripts = Counter(
        unicodedata.name(letter, "").partition(" ")[0]
        for text in sample
        for letter in text
        if letter.isalpha()
    )
    total = scripts.total()
    if not total:
        return None
    script = scripts.most_common(1)[0][0]
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > _LEAST_KANA * total:
        return "ja"
    return _by_words(sample) if script == "LATIN" else _BY_SCRIPT.get(script)


def _by_words(texts: Sequence[str]) -> str | None:
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    shares = {
        language: sum(counts[word] for word in words.split()) / counts.total()
        for language, words in _LITTLE_WORDS.items()
    }
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= _LEAST_SHARE else None
