"""Whether a training's text is held in memory, or on disk."""

from pathlib import Path
from typing import Literal

from regard.choices import check_choice, choose
from regard.errors import DataError, SettingError
from regard.tasks import TASKS, Recipe
from regard.tasks.recipe import HELD_OUT
from regard.tasks.streaming import streamed
from regard.text.reading.forms import TABLES

# Bytes of text from which on it is not held in memory, where the recipe does not say.
LARGE = 1 << 30
# What compression makes of text, about.
_PACKED = 4

Place = Literal["auto", "memory", "disk"]


def is_on_disk(recipe: Recipe, place: Place) -> bool:
    """Whether text is encoded into files: by ``auto`` a gigabyte or more, where it can be."""
    check_choice("place", place, Place)
    if place == "memory":
        return False
    reason = _why_not(recipe)
    if place == "disk" and reason is not None:
        raise SettingError(
            f"training.corpus must be memory {reason}; got 'disk'. Leave it out, or set "
            'training.corpus = "memory".'
        )
    return reason is None and (place == "disk" or _size(recipe) >= LARGE)


def _why_not(recipe: Recipe) -> str | None:
    """Reason against the disk, to follow "must be memory"."""
    if streamed(choose("task", recipe.task, TASKS).task) is None:
        return f"for {recipe.task}"
    if recipe.uses_phrasebook or not recipe.named("train"):
        return "for a text that is not in files"
    if recipe.data.test == HELD_OUT:
        return "where the test is held out of the training text; name one: data.test"
    if recipe.tokenizer is not None and (recipe.tokenizer.dropout or recipe.tokenizer.alpha):
        return "where every epoch cuts the text anew, tokenizer.dropout or tokenizer.alpha"
    return None


def _size(recipe: Recipe) -> int:
    """Bytes of the training text, about; 0 where that cannot be told."""
    try:
        files = recipe.files("train")
    except DataError:  # who reads them says what is wrong with them
        return 0
    return sum(map(_size_of, files))


def _size_of(file: Path) -> int:
    packed = file.suffix in (".gz", ".zst", *TABLES)
    return file.stat().st_size * (_PACKED if packed else 1) if file.is_file() else 0
