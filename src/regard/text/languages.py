"""Scripts of texts, and pairs whose sides are in each other's script."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

# Scripts that one language mixes count as one.
_SAME = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "Han or kana")


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
    """Pairs that are not in the scripts that the rest of the corpus is in; none if those are one.

    A pair is exchanged if most letters of both sides are in the other's script, and one side is
    misplaced if it has no letter of its own script.
    """
    scripts = side_script(sources), side_script(targets)
    judged = [
        (False, False) if scripts[0] == scripts[1] else _by_script(*pair, *scripts)
        for pair in zip(sources, targets, strict=True)
    ]
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
