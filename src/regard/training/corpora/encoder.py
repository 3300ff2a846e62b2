"""Encoder of lines into ids, here or in a process of its own."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from regard.config import JsonValue
from regard.errors import DataError, RegardError
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.recipe import RecipeTable
from regard.tasks.streaming import Chunk, StreamedTask
from regard.text import BadLines, Sequences
from regard.training.corpora.messages import (
    Message,
    bad_lines_of,
    chunk_of,
    chunk_table,
    counted,
    receive,
    send,
)


@dataclass(frozen=True)
class Encoded:
    """Encoded chunk.

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

    def table(self) -> dict[str, object]:
        """The encoder as JSON can hold it."""
        return {
            "recipe": self.recipe,
            "tokenizer": str(self.tokenizer),
            "held": [chunk_table(chunk) for chunk in self.held],
        }

    @classmethod
    def of(cls, table: Mapping[str, JsonValue]) -> "Encoder":
        """The encoder whose table it is."""
        held = cast(list[dict[str, JsonValue]], table["held"])
        return cls(
            cast(RecipeTable, table["recipe"]),
            Path(cast(str, table["tokenizer"])),
            [chunk_of(each) for each in held],
        )


def serve() -> None:
    """Read an encoder and then chunks from stdin, and write what they become to stdout."""
    into = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever else is said is for people
    encoder: Encoder | None = None
    while message := receive(sys.stdin.buffer):
        table, _ = message
        if encoder is None:
            encoder = Encoder.of(table)
            continue
        try:
            send(into, *_told(encoder.encode(chunk_of(table))))
        except RegardError as error:
            send(into, {"error": str(error)})


def received(message: Message) -> Encoded:
    """Reply of an encoding process for a chunk.

    Raises:
        DataError: A line cannot be used.
    """
    table, arrays = message
    if "error" in table:
        raise DataError(cast(str, table["error"]))
    names = cast(list[str], table["names"])
    pairs = zip(arrays[::2], arrays[1::2], strict=True)
    return Encoded(
        {name: Sequences(*pair) for name, pair in zip(names, pairs, strict=True)},
        bad_lines_of(table["bad_lines"]),
        bad_lines_of(table["too_long"]),
    )


def _told(encoded: Encoded) -> tuple[dict[str, object], list[np.ndarray]]:
    table: dict[str, object] = {
        "names": [*encoded.arrays],
        "bad_lines": counted(encoded.bad_lines),
        "too_long": counted(encoded.too_long),
    }
    arrays = [part for each in encoded.arrays.values() for part in (each.ids, each.offsets)]
    return table, arrays
