"""Encoder of lines into ids, here or in a process of its own."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from regard.errors import DataError, RegardError
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.recipe import RecipeTable
from regard.tasks.streaming import Chunk, StreamedTask
from regard.text import BadLines, Sequences


@dataclass(frozen=True)
class Encoded:
    """Arrays of an encoded chunk by the names of ``StreamedTask.stored_as``; lines left out."""

    arrays: Mapping[str, Sequences]
    bad_lines: BadLines = field(default_factory=BadLines)
    too_long: BadLines = field(default_factory=BadLines)


@dataclass(frozen=True)
class Encoder:
    """A task with its vocabularies, as it can be sent to another process.

    Attributes:
        recipe: The table of the recipe.
        tokenizer: The folder of the vocabularies.
        held: Lines that are held out, in chunks.
    """

    recipe: RecipeTable
    tokenizer: Path
    held: Sequence[Chunk]

    def encode(self, chunk: Chunk) -> Encoded:
        """The ids of some lines.

        Raises:
            DataError: A line cannot be used.
        """
        task, recipe, held = self._ready
        bad_lines, too_long = BadLines(), BadLines()
        examples = task.of_chunk(recipe, chunk, bad_lines=bad_lines)
        separate = task.apart(examples, held)
        return Encoded(task.to_store(separate, too_long=too_long), bad_lines, too_long)

    @cached_property
    def _ready(self) -> tuple[StreamedTask[object, object], Recipe, list[object]]:
        recipe = recipe_from_table(self.recipe)
        task = TASKS[recipe.task].task.load(recipe, self.tokenizer)
        assert isinstance(task, StreamedTask)
        held = [example for chunk in self.held for example in task.of_chunk(recipe, chunk)]
        return task, recipe, held


_encoder: Encoder  # of a process that encodes


def begin(encoder: Encoder) -> None:
    """Begin a process that encodes, which ends with its parent and leaves Ctrl-C to it."""
    global _encoder  # noqa: PLW0603
    _encoder = encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def encode(chunk: Chunk) -> Encoded:
    """The ids of some lines, in a process that ``begin`` has begun."""
    try:
        return _encoder.encode(chunk)
    except RegardError as error:
        raise DataError(str(error)) from None  # some of its kinds cannot be pickled


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
