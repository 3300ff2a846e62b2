"""What turns lines into ids, here or in a process of its own."""

import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from regard.errors import RegardError
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.recipe import RecipeTable
from regard.tasks.streaming import Chunk, StreamedTask
from regard.text import BadLines, Sequences


@dataclass(frozen=True)
class Encoded:
    """What a chunk becomes.

    Attributes:
        arrays: By the names of ``StreamedTask.stored_as``.
        bad_lines: Lines left out.
        too_long: Examples left out or cut.
    """

    arrays: Mapping[str, Sequences]
    bad_lines: BadLines = field(default_factory=BadLines)
    too_long: BadLines = field(default_factory=BadLines)


@dataclass(frozen=True)
class Encoder:
    """A task with its vocabularies, as it can be told to another process.

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
        kept = task.apart(examples, held)
        return Encoded(task.to_store(kept, too_long=too_long), bad_lines, too_long)

    @cached_property
    def _ready(self) -> tuple[StreamedTask[object, object], Recipe, list[object]]:
        recipe = recipe_from_table(self.recipe)
        task = TASKS[recipe.task].task.load(recipe, self.tokenizer)
        assert isinstance(task, StreamedTask)
        held = [example for chunk in self.held for example in task.of_chunk(recipe, chunk)]
        return task, recipe, held

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("recipe", "tokenizer", "held")}


def serve() -> None:
    """Read an encoder and then chunks from stdin, and write what they become to stdout."""
    into = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever else is said is for people
    encoder: Encoder = pickle.load(sys.stdin.buffer)
    while True:
        try:
            chunk = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found: Encoded | str = encoder.encode(chunk)
        except RegardError as error:
            found = str(error)
        pickle.dump(found, into)
        into.flush()
