"""Inferred tasks of a file: the recipe, the reason, and the command."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from regard.text.normalization import unspaced_runs

# Labels are few, short, and come again and again.
_MOST_LABELS, _LONGEST_LABEL, _LEAST_REPEATS = 100, 25, 3
LEAST_ROWS = 12
# A word of an entity, or of a cut text, in BIO, BIOES, BILOU, BMES or BMEWO.
_BIO = re.compile(r"[BIOESLUMW](-.+)?")
PAIRS = "pairs of texts with labels"
# Of a text that is looked at for its script, and the share of signs that make it Chinese.
_SHOWN, _UNSPACED_SHARE = 2000, 0.2


@dataclass(frozen=True, slots=True)
class Guess:
    """Inferred task of a file.

    Attributes:
        what: What it is taken for.
        why: What was seen in it.
        recipe: The recipe that trains on it; None is one made for it, a translator's.
        settings: What has to be set besides, such as which column is which.
    """

    what: str
    why: str
    recipe: str | None = None
    settings: tuple[str, ...] = ()

    def command(self, files: Sequence[str], verb: str = "train") -> str:
        """The command that says so."""
        words = [*verb.split(), *([self.recipe] if self.recipe else []), *files]
        for setting in self.settings:
            words += ["--set", setting]
        return shlex.join(["regard", *words])


@dataclass(frozen=True, slots=True)
class Guesses:
    """Candidate tasks, the likeliest first.

    Attributes:
        found: At least one.
        is_sure: Whether the first is it.
    """

    found: tuple[Guess, ...]
    is_sure: bool

    @property
    def best(self) -> Guess:
        """The likeliest."""
        return self.found[0]


def is_label(cells: Sequence[str]) -> bool:
    """Whether these are labels: few, short, each again and again."""
    kinds = set(cells)
    is_short = max(map(len, kinds), default=0) <= _LONGEST_LABEL and "" not in kinds
    is_few = len(kinds) <= _MOST_LABELS and len(cells) >= _LEAST_REPEATS * len(kinds)
    return is_short and is_few and len(kinds) > 1 and len(cells) >= LEAST_ROWS


def tagging(
    tags: Sequence[str], why: str, words: Sequence[str], settings: tuple[str, ...] = ()
) -> Guess:
    """Words with these tags."""
    is_bio = all(_BIO.fullmatch(tag) for tag in tags)
    recipe = "tagging-words"
    if is_bio:
        recipe = "tagging-chinese-entities" if is_chinese(words) else "tagging-entities"
    shown = ", ".join(list(dict.fromkeys(tags))[:4])
    return Guess("words with tags", f"{why} ({shown}, …)", recipe, settings)


def labelled(texts: Sequence[str], why: str, settings: tuple[str, ...]) -> Guess:
    """Texts with labels."""
    kind = "chinese" if is_chinese(texts) else "convolution"
    settings = () if settings == columns_set(text=1, label=2) else settings
    return Guess("texts with labels", why, f"classification-{kind}", settings)


def summaries(texts: Sequence[str], why: str, settings: tuple[str, ...]) -> Guess:
    """Documents with summaries."""
    settings = () if settings == columns_set(document=1, answer=2) else settings
    recipe = "summarisation-chinese" if is_chinese(texts) else "summarisation"
    return Guess("documents with summaries", why, recipe, settings)


def columns_set(**columns: int | str) -> tuple[str, ...]:
    """Settings that say which column is which."""
    return tuple(f"data.{name}={column}" for name, column in columns.items())


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most texts are of a script that puts no spaces between words.

    A Chinese name in an English text does not make it Chinese.

    Example:
        >>> is_chinese(["我爱中国。", "用 PyTorch 训练"]), is_chinese(["Su Shi (苏轼) was a poet."])
        (True, False)
    """
    return sum(map(_is_unspaced, texts)) > len(texts) / 2


def _is_unspaced(text: str) -> bool:
    shown = text[:_SHOWN]
    return sum(end - start for start, end in unspaced_runs(shown)) > _UNSPACED_SHARE * len(shown)
