"""Decides which of two languages a sentence is in: by script, or by the corpus's statistics."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

# Scripts that one language mixes count as one; two languages in them are told apart by their text.
_HAN_OR_KANA = "Han or kana"
_SAME = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), _HAN_OR_KANA)

_MOST_LINES = 20_000  # enough to know two languages by their trigrams
_EVIDENCE = 12.0  # log-likelihood ratio that the other language must win by: e^12 to 1


class _Scripts(dict[int, str]):
    def __missing__(self, code: int) -> str:
        char = chr(code)
        name = unicodedata.name(char, "").partition(" ")[0] if char.isalpha() else ""
        self[code] = _SAME.get(name, name.capitalize())
        return self[code]


_SCRIPTS = _Scripts()


def main_script(text: str) -> str:
    """The script of most letters; empty if there are none.

    Example:
        >>> main_script("我爱 China 中国"), main_script("Я люблю"), main_script("12!")
        ('Latin', 'Cyrillic', '')
    """
    counts = _script_counts(text)
    return counts.most_common(1)[0][0] if counts else ""


def side_script(texts: Sequence[str]) -> str:
    """The script of most of ``texts``."""
    counts = Counter(script for text in texts if (script := main_script(text)))
    return counts.most_common(1)[0][0] if counts else ""


def _script_counts(text: str) -> Counter[str]:
    return Counter(script for char in text if (script := _SCRIPTS[ord(char)]))


@dataclass(frozen=True, slots=True)
class Placement:
    """Pairs whose sides seem to be in the wrong language, by their index.

    Attributes:
        exchanged: Both sides are in each other's language.
        source_in_target: Only the source is: both sides are in the target's language.
        target_in_source: Only the target is.
    """

    exchanged: tuple[int, ...]
    source_in_target: tuple[int, ...]
    target_in_source: tuple[int, ...]


def misplaced(sources: Sequence[str], targets: Sequence[str]) -> Placement:
    """Pairs that are not in the two languages that the rest of the corpus is in.

    Where the sides have different scripts, by script: a pair is exchanged if most letters of both
    are in the other's, and one side is misplaced if it has no letter of its own script. Where the
    sides have one script, by a model of the characters of each, learned from the corpus itself: the
    log-likelihood ratio of the trigrams (bigrams, for Chinese) that the two do not share, so that
    names do not count, must be overwhelming.
    """
    scripts = side_script(sources), side_script(targets)
    if scripts[0] != scripts[1]:
        judged = [_by_script(*pair, *scripts) for pair in zip(sources, targets, strict=True)]
    else:
        size = 2 if scripts[0] == _HAN_OR_KANA else 3
        model = _Model.of(sources, targets, size=size)
        judged = [model.judge(*pair) for pair in zip(sources, targets, strict=True)]
    return Placement(
        exchanged=tuple(i for i, wrong in enumerate(judged) if wrong == (True, True)),
        source_in_target=tuple(i for i, wrong in enumerate(judged) if wrong == (True, False)),
        target_in_source=tuple(i for i, wrong in enumerate(judged) if wrong == (False, True)),
    )


def _by_script(
    source: str, target: str, source_script: str, target_script: str
) -> tuple[bool, bool]:
    """Whether the source, and whether the target, is in the other's script."""
    found = _script_counts(source), _script_counts(target)
    if main_script(source) == target_script and main_script(target) == source_script:
        return True, True
    return (
        set(found[0]) == {target_script} and source != target,
        set(found[1]) == {source_script} and source != target,
    )


@dataclass(frozen=True, slots=True)
class _Model:
    """How much more likely each n-gram is on the source side than on the target's, as a log."""

    ratios: dict[str, float]
    size: int

    @classmethod
    def of(cls, sources: Sequence[str], targets: Sequence[str], *, size: int) -> "_Model":
        step = max(1, len(sources) // _MOST_LINES)
        counts = [
            Counter(gram for text in texts[::step] for gram in _grams(text, size))
            for texts in (sources, targets)
        ]
        grams = counts[0].keys() | counts[1].keys()
        totals = [side.total() + len(grams) for side in counts]
        offset = math.log(totals[1]) - math.log(totals[0])
        ratios = {
            gram: math.log(counts[0][gram] + 1) - math.log(counts[1][gram] + 1) + offset
            for gram in grams
        }
        return cls(ratios, size)

    def judge(self, source: str, target: str) -> tuple[bool, bool]:
        """Whether the source, and whether the target, is in the other's language beyond doubt."""
        source_grams, target_grams = _grams(source, self.size), _grams(target, self.size)
        shared = set(source_grams) & set(target_grams)
        source_looks = self._evidence(source_grams, shared)
        target_looks = self._evidence(target_grams, shared)
        if source_looks < 0 < target_looks and target_looks - source_looks > _EVIDENCE:
            return True, True
        return (
            source_looks < -_EVIDENCE and target_looks < -_EVIDENCE,
            target_looks > _EVIDENCE and source_looks > _EVIDENCE,
        )

    def _evidence(self, grams: Sequence[str], shared: set[str]) -> float:
        """Above zero for the source's language, below for the target's."""
        return sum((self.ratios.get(gram, 0.0) for gram in grams if gram not in shared), 0.0)


def _grams(text: str, size: int) -> list[str]:
    padded = f" {text.casefold()} "
    return [padded[i : i + size] for i in range(len(padded) - size + 1)]
