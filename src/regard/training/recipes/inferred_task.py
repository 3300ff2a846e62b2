"""Tasks inferred from a file: recipe, reason and command."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.config import JsonValue, format_setting
from regard.text.normalization import unspaced_runs

# Labels are few, short, and come again and again.
_MOST_LABELS, _LONGEST_LABEL, _LEAST_REPEATS = 100, 25, 3
LEAST_ROWS = 12
# A word of an entity, or of a cut text, in BIO, BIOES, BILOU, BMES or BMEWO.
_BIO = re.compile(r"[BIOESLUMW](-.+)?")
PAIRS = "pairs of texts with labels"
# Of a text that is looked at for its script, and the share of signs that make it Chinese.
_SHOWN, _UNSPACED_SHARE = 2000, 0.2

Settings = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class InferredTask:
    """Inferred task of a file; no recipe is one made for its sentence pairs."""

    description: str
    reason: str
    recipe: str | None = None
    settings: Settings = field(default_factory=dict)

    def command(self, files: Sequence[str], verb: str = "train") -> str:
        """The command that names recipe and settings."""
        words = [*verb.split(), *([self.recipe] if self.recipe else []), *files]
        for name, value in self.settings.items():
            words += ["--set", format_setting(name, value)]
        return shlex.join(["regard", *words])


@dataclass(frozen=True, slots=True)
class InferredTasks:
    """Candidate tasks, one at least and the likeliest first."""

    candidates: tuple[InferredTask, ...]
    is_sure: bool

    @property
    def best(self) -> InferredTask:
        """The likeliest."""
        return self.candidates[0]


def is_label(cells: Sequence[str]) -> bool:
    """Whether these are labels: few, short, each again and again."""
    kinds = set(cells)
    is_short = max(map(len, kinds), default=0) <= _LONGEST_LABEL and "" not in kinds
    is_few = len(kinds) <= _MOST_LABELS and len(cells) >= _LEAST_REPEATS * len(kinds)
    return is_short and is_few and len(kinds) > 1 and len(cells) >= LEAST_ROWS


def tagging(
    tags: Sequence[str], reason: str, words: Sequence[str], settings: Settings | None = None
) -> InferredTask:
    """Words with these tags."""
    is_bio = all(_BIO.fullmatch(tag) for tag in tags)
    recipe = "tagging-words"
    if is_bio:
        recipe = "tagging-chinese-entities" if is_chinese(words) else "tagging-entities"
    examples = ", ".join(list(dict.fromkeys(tags))[:4])
    return InferredTask("words with tags", f"{reason} ({examples}, …)", recipe, settings or {})


def labelled(texts: Sequence[str], reason: str, settings: Settings) -> InferredTask:
    """Texts with labels."""
    kind = "chinese" if is_chinese(texts) else "convolution"
    settings = {} if settings == columns_set(text=1, label=2) else settings
    return InferredTask("texts with labels", reason, f"classification-{kind}", settings)


def summaries(texts: Sequence[str], reason: str, settings: Settings) -> InferredTask:
    """Documents with summaries."""
    settings = {} if settings == columns_set(document=1, answer=2) else settings
    recipe = "summarisation-chinese" if is_chinese(texts) else "summarisation"
    return InferredTask("documents with summaries", reason, recipe, settings)


def columns_set(**columns: int | str) -> dict[str, JsonValue]:
    """Settings that name columns."""
    return {f"data.{name}": column for name, column in columns.items()}


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most texts are in a script without spaces, apart from names in English ones."""
    return sum(map(_is_unspaced, texts)) > len(texts) / 2


def _is_unspaced(text: str) -> bool:
    start = text[:_SHOWN]
    unspaced = sum(end - begin for begin, end in unspaced_runs(start))
    return unspaced > _UNSPACED_SHARE * len(start)
