"""The possible links of function words, which no single construction decides.

A word without a counterpart of its own goes, possibly, with whatever does its work on the other
side: the annotation practice of Och & Ney (2003), section 6.1, where S stands for what nobody
would leave out and P for what an annotator may add. The rules hold all over the grammar, so they
stand here once.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

Triple = tuple[int, int, bool]

_BE = frozenset(["am", "is", "are", "was", "were"])
_HAVE = frozenset(["has", "have", "had"])
_DO = frozenset(["do", "does", "did"])
_PREPOSITIONS = frozenset(["to", "in", "of", "at", "about", "with", "from", "on"])
# Chinese prepositions of place, whose English is no part of a verb.
_OF_PLACE = frozenset(["在", "从"])
# What stands before a Chinese predicate where English has a form of "be".
_DEGREES = ("很", "太", "最", "非常", "多么", "够", "越来越", "更", "有点儿")
_ADVERBS = frozenset((*_DEGREES, "不", "一样", "又", "都"))
_COVERBS = frozenset(["比", "跟", "离", "对", "为", "被"])
# Verbs of going and of asking, whose English takes "to": 去 is "go to", 让 "tell to".
_TAKE_TO = frozenset(["去", "来", "到", "让", "叫", "请"])
# What makes a bare Chinese noun definite.
_DEFINITE = frozenset(["把", "上", "里", "的"])
_QUESTIONS = frozenset(
    ["吗", "呢", "？", "怎么", "什么", "哪儿", "谁", "什么时候", "为什么", "多久", "多少", "几"]
)
_PARTICLES = {"!": frozenset(["啊", "吧", "了"]), "?": frozenset(["吗", "呢", "吧"])}
# Conjunctions in two parts, which share their English.
_TWO_PARTS = (
    ("又", "又"),
    ("和", "都"),
    ("只要", "就"),
    ("如果", "就"),
    ("一", "就"),
    ("因为", "所以"),
    ("虽然", "但是"),
    ("除了", "以外"),
    ("不但", "而且"),
    ("还", "没"),
)


def function_word_links(
    chinese: Sequence[str], english: Sequence[str], links: Iterable[Triple]
) -> list[Triple]:
    """The possible links that the rules add to those of the constructions.

    - A preposition that its verb or adjective asks for goes with it: "go to", "interested in".
    - "To" goes with the verb before it that is "go to" or "ask to" in one: 去北京, 让他走.
    - "Be" without a counterpart goes with what opens the Chinese predicate: 不高, 比我高, 被骗了.
    - "Have" without a counterpart goes with 已经, which asks for the perfect.
    - "Do", "be" and "have" of a question go with what makes the question: 吗, 怎么, ？.
    - "The" goes with what makes its noun definite: 把书, 桌子上, 穿红裙子的女人.
    - The English of one part of a conjunction in two parts goes with the other: both ... and,
      又...又; not ... yet, 还没.
    - A closing mark goes with a closing particle: 啊, 吗.

    Args:
        chinese: The words of the Chinese sentence.
        english: The words of the English sentence.
        links: (Chinese word, English word, sure) of the constructions.
    """
    known = list(links)
    by_english: defaultdict[int, set[int]] = defaultdict(set)
    sure: set[int] = set()
    for i, j, is_sure in known:
        by_english[j].add(i)
        if is_sure:
            sure.add(j)
    found: list[tuple[int, int]] = []
    is_question = "?" in english
    for j, word in enumerate(each.lower() for each in english):
        mine = by_english[j]
        if word in _PREPOSITIONS and j and _OF_PLACE.isdisjoint(chinese[i] for i in mine):
            found += [(i, j) for i in by_english[j - 1]]
        found += [(i, j) for i in _of_verbs(word, chinese, mine, j in sure, is_question)]
        if word == "the":
            found += [
                (near, j)
                for i in mine
                for near in (i - 1, i + 1)
                if 0 <= near < len(chinese) and chinese[near] in _DEFINITE
            ]
        found += [(i, j) for i, each in enumerate(chinese) if each in _PARTICLES.get(word, ())]
        found += [(i, j) for i in _other_parts(chinese, mine)]
    return [(i, j, False) for i, j in dict.fromkeys(found) if i not in by_english[j]]


def _of_verbs(
    word: str, chinese: Sequence[str], mine: set[int], is_sure: bool, is_question: bool
) -> list[int]:
    """What an auxiliary, or the "to" of an infinitive or a goal, goes with."""
    found: list[int] = []
    if word == "to":
        found += _before(chinese, mine, _TAKE_TO)
    if word in _BE and not is_sure:
        found += _before(chinese, mine, _ADVERBS) + _before(chinese, mine, _COVERBS)
    if word in _HAVE and not is_sure:
        found += [i for i, each in enumerate(chinese) if each == "已经"]
    if is_question and word in _DO | _BE | _HAVE:
        found += [i for i, each in enumerate(chinese) if each in _QUESTIONS]
    return found


def _before(chinese: Sequence[str], places: set[int], words: frozenset[str]) -> list[int]:
    """Where the nearest such word before each place stands."""
    found = []
    for place in places:
        before = [i for i in range(place) if chinese[i] in words]
        found += before[-1:]
    return found


def _other_parts(chinese: Sequence[str], places: set[int]) -> list[int]:
    """The other part of a conjunction that has one of its two parts among the places."""
    found = []
    for first, second in _TWO_PARTS:
        for one, other in ((first, second), (second, first)):
            if any(chinese[i] == one for i in places):
                found += [i for i, each in enumerate(chinese) if each == other]
    return found
