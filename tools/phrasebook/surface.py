"""From words to sentences: capitals, spaces, articles, full stops, and where each word stands."""

from regard.text.phrasebook import Phrase, Span
from tools.phrasebook.grammar import Unit
from tools.phrasebook.guideline import function_word_links
from tools.phrasebook.morphology import article

_ENDS = {"？": "?", "！": "!"}
_NO_SPACE_BEFORE = frozenset({".", ",", "?", "!", ":"})
_OWNER = "'s"


def finish(unit: Unit, *, stop: bool = True) -> Phrase:
    """The sentence a unit spells.

    A statement gets its full stop: always in English, in Chinese if ``stop``.

    Example:
        >>> from tools.phrasebook.grammar import build, word
        >>> thing = build("一 个 {it}", "a {it}", it=word("苹果", "apple"))
        >>> phrase = finish(build("是 {thing}", "it is {thing}", thing=thing))
        >>> phrase.source, phrase.target
        ('是一个苹果。', 'It is an apple.')
    """
    zh = list(unit.zh)
    en, links = _with_owners(_with_articles(unit.en), unit.links)
    en[0] = en[0][0].upper() + en[0][1:]
    if zh[-1] not in _ENDS:
        en.append(".")
        if stop:
            zh.append("。")
            links.append((len(zh) - 1, len(en) - 1, True))
    links += function_word_links(zh, en, links)
    source, source_words = _spell(zh, spaced=False)
    target, target_words = _spell(en, spaced=True)
    return Phrase(
        source,
        target,
        source_words,
        target_words,
        frozenset([(i, j) for i, j, sure in links if sure]),
        frozenset([(i, j) for i, j, _ in links]),
        unit.constructions,
        (target,),
    )


def _with_articles(words: tuple[str, ...]) -> list[str]:
    spelled = list(words)
    for place, each in enumerate(words[:-1]):
        if each == "a":
            spelled[place] = article(words[place + 1])
    return spelled


def _with_owners(
    words: list[str], links: tuple[tuple[int, int, bool], ...]
) -> tuple[list[str], list[tuple[int, int, bool]]]:
    """Joins "'s" to the word before it; what was linked to "'s" is then only possible."""
    if _OWNER not in words:
        return words, list(links)
    joined: list[str] = []
    places = []
    for each in words:
        if each == _OWNER:
            joined[-1] += each
        else:
            joined.append(each)
        places.append(len(joined) - 1)
    return joined, [(i, places[j], sure and words[j] != _OWNER) for i, j, sure in links]


def _spell(words: list[str], *, spaced: bool) -> tuple[str, tuple[Span, ...]]:
    text = ""
    spans = []
    for each in words:
        if spaced and text and each not in _NO_SPACE_BEFORE:
            text += " "
        spans.append((len(text), len(text) + len(each)))
        text += each
    return text, tuple(spans)
