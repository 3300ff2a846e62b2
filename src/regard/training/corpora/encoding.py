"""Text encoded by several processes into one set of files; a killed encoding can be resumed."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import TypedDict, cast

import numpy as np

from regard.config import JsonValue
from regard.errors import DataError, RegardError, TrainingError
from regard.runs.files import append, cut, fill_file, make_folder, sync_file
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.recipe import RecipeTable
from regard.tasks.streaming import Chunk, StreamedTask
from regard.text import BadLines, Sequences
from regard.text.corpus import ENDS, IDS, NARROW, WIDE
from regard.training.corpora.cache import (
    bad_lines_of,
    counted,
    make_anew,
    read_sealed,
    write_sealed,
)

_PROGRESS = "progress.json"
# Seconds between two moments from which a killed encoding goes on.
_SAVED_EVERY = 10.0


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


@dataclass(frozen=True, slots=True)
class Layout:
    """Arrays of an encoded corpus; ``numbered`` are those whose numbers continue over chunks."""

    names: tuple[str, ...]
    numbered: tuple[str, ...]


class _State(TypedDict):
    """Contents of ``progress.json``: how far the files are whole."""

    chunks: int
    sizes: dict[str, int]
    ends: dict[str, int]
    next_number: dict[str, int]
    bad_lines: JsonValue
    too_long: JsonValue


def encode_into(
    folder: Path,
    layout: Layout,
    chunks_after: Callable[[int], Iterable[Chunk]],
    encoder: Encoder,
    *,
    processes: int,
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[int, BadLines, BadLines]:
    """Encode a text into a folder, resuming a killed encoding; samples and lines left out."""
    writer = _Writer.of(folder, layout)
    lines = chunks_after(writer.chunks)
    with _results(encoder, lines, processes) as results:
        for count, encoded in results:
            writer.add(encoded)
            progress(count)
    writer.save()
    return writer.samples, writer.bad_lines, writer.too_long


class _Writer:
    """Adds to the files, and says now and then how far they are whole."""

    def __init__(self, folder: Path, layout: Layout, state: _State) -> None:
        self.folder, self.layout = folder, layout
        self.chunks, self._sizes = state["chunks"], state["sizes"]
        self._ends, self._next_number = state["ends"], state["next_number"]
        self.bad_lines, self.too_long = (
            bad_lines_of(each) for each in (state["bad_lines"], state["too_long"])
        )
        self._saved_at = monotonic()

    @classmethod
    def of(cls, folder: Path, layout: Layout) -> "_Writer":
        """Goes on where the files are whole, or begins."""
        make_folder(folder)
        state = cast("_State | None", read_sealed(folder / _PROGRESS))
        names = [f"{name}{part}" for name in layout.names for part in (IDS, ENDS)]
        if state is not None and all(_size(folder / n) >= state["sizes"][n] for n in names):
            for name in names:
                cut(folder / name, state["sizes"][name])
            return cls(folder, layout, state)
        make_anew(folder)
        for name in names:
            fill_file(folder / name, bytes(WIDE.itemsize) if name.endswith(ENDS) else b"")
        begun: _State = {
            "chunks": 0,
            "sizes": {name: _size(folder / name) for name in names},
            "ends": dict.fromkeys(layout.names, 0),
            "next_number": dict.fromkeys(layout.numbered, 0),
            "bad_lines": counted(BadLines()),
            "too_long": counted(BadLines()),
        }
        return cls(folder, layout, begun)

    @property
    def samples(self) -> int:
        """Parts of the first array."""
        return self._sizes[f"{self.layout.names[0]}{ENDS}"] // WIDE.itemsize - 1

    def add(self, encoded: Encoded) -> None:
        """Add what a chunk became."""
        for name in self.layout.names:
            self._add(name, encoded.arrays[name])
        self.bad_lines.merge(encoded.bad_lines)
        self.too_long.merge(encoded.too_long)
        self.chunks += 1
        if monotonic() - self._saved_at > _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Have all that was added outlive whatever happens."""
        for name in self._sizes:
            sync_file(self.folder / name)
        state: _State = {
            "chunks": self.chunks,
            "sizes": self._sizes,
            "ends": self._ends,
            "next_number": self._next_number,
            "bad_lines": counted(self.bad_lines),
            "too_long": counted(self.too_long),
        }
        write_sealed(self.folder / _PROGRESS, state)
        self._saved_at = monotonic()

    def _add(self, name: str, sequences: Sequences) -> None:
        ids, kind = sequences.ids, NARROW
        if name in self.layout.numbered:
            first, kind = self._next_number[name], WIDE
            ids = np.where(ids < 0, ids, ids + first)
            self._next_number[name] = max(first, int(ids.max(initial=-1)) + 1)
        ends = sequences.offsets[1:] + self._ends[name]
        self._ends[name] += int(sequences.offsets[-1])
        for part, content in ((IDS, ids.astype(kind)), (ENDS, ends.astype(WIDE))):
            append(self.folder / f"{name}{part}", content.tobytes())
            self._sizes[f"{name}{part}"] += content.nbytes


@contextmanager
def _results(
    encoder: Encoder, lines: Iterable[Chunk], processes: int
) -> Iterator[Iterator[tuple[int, Encoded]]]:
    """The number of lines of each chunk, and its ids, in their order."""
    if processes == 1:
        yield ((len(chunk.lines), encoder.encode(chunk)) for chunk in lines)
        return
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=begin, initargs=(encoder,)
    )
    try:
        yield _in_order(pool, lines, ahead=2 * processes)
    except BrokenProcessPool as error:
        raise TrainingError(
            "a process that encodes text must run to its end; one has ended. Was there memory "
            "enough? The same command goes on."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor, lines: Iterable[Chunk], *, ahead: int
) -> Iterator[tuple[int, Encoded]]:
    waiting: deque[tuple[int, Future[Encoded]]] = deque()
    for chunk in lines:
        with _without_main():
            waiting.append((len(chunk.lines), pool.submit(encode, chunk)))
        while len(waiting) > ahead:
            count, future = waiting.popleft()
            yield count, future.result()
    for count, future in waiting:
        yield count, future.result()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module from processes that start, which would run a script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else -1
