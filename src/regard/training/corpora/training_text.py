"""The text of a training: examples in memory, or encoded on disk."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from regard.checks import check_choice, choose, counted
from regard.errors import DataError, RunError, SettingError
from regard.runs import Run
from regard.tasks import TASKS, AnyTask, Parts, Recipe
from regard.tasks.settings.recipe import HELD_OUT
from regard.tasks.streaming import Stored, streamed
from regard.text import BadLines
from regard.text.reading.opening import TABLES
from regard.text.reading.records import HARMLESS
from regard.training.corpora.stored_text import StoredText
from regard.training.settings import TrainingConfig

# Bytes of text from which on it is not held in memory, where the recipe does not say.
LARGE = 1 << 30
# The compression ratio of text, about.
_PACKED = 4

Corpus = Literal["auto", "memory", "disk"]


@dataclass(frozen=True)
class TrainingText:
    """Examples to train and to validate on, in memory; or on disk, and a sample of them."""

    recipe: Recipe
    parts: Parts[object]
    stored: StoredText | None
    bad_lines: BadLines
    too_long: BadLines = field(default_factory=BadLines)

    @classmethod
    def read(cls, recipe: Recipe, config: TrainingConfig) -> "TrainingText":
        """The text of a recipe, read from its files."""
        bad_lines = BadLines()
        if config.corpus == "memory":
            task = choose("task", recipe.task, TASKS).task
            return cls(recipe, task.read_parts(recipe, bad_lines=bad_lines), None, bad_lines)
        stored = StoredText.of(recipe, cache=config.cache)
        return cls(recipe, stored.parts(bad_lines), stored, bad_lines)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the examples, in their order."""
        return self._checksum({})

    def _checksum(self, names: Mapping[str, str]) -> str:
        """The checksum, with files by other names: an example says in which one it stands."""
        digest = hashlib.sha256(self.stored.folder.name.encode() if self.stored else b"")
        identify = TASKS[self.recipe.task].task.fingerprint
        for example in (*self.parts.train, *self.parts.valid):
            identity = identify(example)
            for name, replacement in names.items():
                identity = identity.replace(name, replacement)
            digest.update(identity.encode())
        return digest.hexdigest()

    def _has(self, fingerprint: str) -> bool:
        """Whether a checksum is this text's, from whatever folder its files were named then."""
        if fingerprint == self.fingerprint:
            return True
        if self.recipe.uses_phrasebook:
            return False
        files = [*self.recipe.files("train"), *self.recipe.files("valid")]
        whole = {str(file): Path(os.path.realpath(file)) for file in files}
        depth = max((len(path.parts) for path in whole.values()), default=0)
        spellings: list[Callable[[Path], str]] = [str, os.path.relpath]
        spellings += [partial(_last_parts, count=count) for count in range(1, depth)]
        return any(
            self._checksum({name: spell(path) for name, path in whole.items()}) == fingerprint
            for spell in spellings
        )

    def check_same_as(self, run: Run | None) -> None:
        """Raise RunError if a run was begun with another text."""
        if run is None or (begun_with := run.card.get("text")) is None or self._has(begun_with):
            return
        raise RunError(
            f"{run.path} must go on with the text it began with; its "
            f"{TASKS[self.recipe.task].task.unit} have changed since. Restore them, or train "
            "the new ones into another folder: --run FOLDER."
        )

    def learn_task(self, recipe: Recipe, vocabularies: Path | None, *, is_new: bool) -> AnyTask:
        """The task, vocabularies loaded or learned; infers open settings of a new run."""
        task = TASKS[recipe.task].task
        resolved = task.resolved(recipe, None, self.parts.train) if is_new else recipe
        if vocabularies is not None:
            return task.load(resolved, vocabularies)
        if self.stored is not None:
            return self.stored.learned(resolved)
        return task.learn(resolved, self.parts.train)

    def encoded(self, task: AnyTask) -> Stored[object] | None:
        """The text on disk as ids; None where it is in memory."""
        if self.stored is None:
            return None
        return self.stored.encoded(task, bad_lines=self.bad_lines, too_long=self.too_long)

    def describe(self) -> list[str]:
        """Counts of the examples that are left out or held out, in lines."""
        unit = TASKS[self.recipe.task].task.unit
        lines = []
        unreadable = self.bad_lines
        for reason in HARMLESS:
            if many := self.bad_lines.counts[reason]:
                first = [message.partition(": ")[0] for message in self.bad_lines.examples[reason]]
                more = ", …" if many > len(first) else ""
                lines.append(f"{many:,} {reason} left out: {', '.join(first)}{more}")
            unreadable = unreadable.without(reason)
        if unreadable.total:
            lines.append(f"left out {unreadable.total:,} lines that cannot be read: {unreadable}")
        if self.too_long.total:
            count = f"cut or left out {self.too_long.total:,} {unit} too long"
            lines.append(f"{count}: {self.too_long}")
        if self.recipe.holds_out_test and not self.parts.test:
            lines.append(f"no {unit} held out to test on: there are too few. data.test names some")
        elif self.recipe.holds_out_test:
            tested = len(self.parts.test)
            more = f", {tested + self.parts.references:,} with their further references"
            lines.append(
                f"{counted(tested, unit)} held out to test on, chosen by hash and not trained on"
                f"{more if self.parts.references else ''}; data.test names others"
            )
        if self.parts.overlap:
            lines.append(
                f"{unit} left out, since a side of theirs is held out: {self.parts.overlap:,}"
            )
        return lines


def _last_parts(path: Path, count: int) -> str:
    return "/".join(path.parts[-count:])


def is_on_disk(recipe: Recipe, corpus: Corpus) -> bool:
    """Whether text is encoded into files: by ``auto`` a gigabyte or more, where it can be."""
    check_choice("corpus", corpus, Corpus)
    if corpus == "memory":
        return False
    reason = _why_not(recipe)
    if corpus == "disk" and reason is not None:
        raise SettingError(
            f"training.corpus must be memory {reason}; got 'disk'. Leave it out, or set "
            'training.corpus = "memory".'
        )
    return reason is None and (corpus == "disk" or _size(recipe) >= LARGE)


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
    except DataError:  # their reader raises it
        return 0
    return sum(map(_size_of, files))


def _size_of(file: Path) -> int:
    packed = file.suffix in (".gz", ".zst", *TABLES)
    return file.stat().st_size * (_PACKED if packed else 1) if file.is_file() else 0
