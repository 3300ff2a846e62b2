"""Text encoded by several processes into one set of files; a killed encoding can be resumed."""

import multiprocessing
import os
import shutil
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
from regard.files import explain_refusal, fill_file, sync_file, write_file
from regard.runs.files import append, cut, make_folder, seal
from regard.tasks import TASKS, Recipe, recipe_from_table
from regard.tasks.settings.recipe import RecipeTable
from regard.tasks.streaming import Chunk, StreamedTask
from regard.text import BadLines, Sequences
from regard.text.corpus import ENDS, IDS, NARROW, WIDE
from regard.training.corpora.cache import read_sealed, tally_from_json, tally_to_json

_PROGRESS = "progress.json"
# Seconds between two moments from which a killed encoding goes on.
_SAVED_EVERY = 10.0


@dataclass(frozen=True)
class EncodedChunk:
    """Arrays of an encoded chunk by the names of ``StreamedTask.stored_as``; lines left out."""

    arrays: Mapping[str, Sequences]
    bad_lines: BadLines = field(default_factory=BadLines)
    too_long: BadLines = field(default_factory=BadLines)


@dataclass(frozen=True)
class ChunkEncoder:
    """A task with its vocabularies, as it can be sent to another process."""

    recipe: RecipeTable
    tokenizer: Path
    held: Sequence[Chunk]  # lines that are held out

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """The ids of some lines."""
        task, recipe, held = self._ready
        bad_lines, too_long = BadLines(), BadLines()
        examples = task.of_chunk(recipe, chunk, bad_lines=bad_lines)
        separate = task.drop_overlap(examples, held)
        return EncodedChunk(task.to_store(separate, too_long=too_long), bad_lines, too_long)

    @cached_property
    def _ready(self) -> tuple[StreamedTask[object, object], Recipe, list[object]]:
        recipe = recipe_from_table(self.recipe)
        task = TASKS[recipe.task].task.load(recipe, self.tokenizer)
        assert isinstance(task, StreamedTask)
        held = [example for chunk in self.held for example in task.of_chunk(recipe, chunk)]
        return task, recipe, held


_encoder: ChunkEncoder  # of a process that encodes


def begin(encoder: ChunkEncoder) -> None:
    """Begin a process that encodes, which ends with its parent and leaves Ctrl-C to it."""
    global _encoder  # noqa: PLW0603
    _encoder = encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def encode(chunk: Chunk) -> EncodedChunk:
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
    task: StreamedTask[object, object],
    chunks_after: Callable[[int], Iterable[Chunk]],
    encoder: ChunkEncoder,
    *,
    processes: int,
    progress: Callable[[int], None],
) -> tuple[int, BadLines, BadLines]:
    """Encode a text into a folder, resuming a killed encoding; samples and lines left out."""
    writer = _ArrayWriter(folder, task.stored_as, task.numbered)
    lines = chunks_after(writer.state["chunks"])
    with _results(encoder, lines, processes) as results:
        for count, encoded in results:
            writer.add(encoded)
            progress(count)
    writer.save()
    return writer.samples, writer.bad_lines, writer.too_long


class _ArrayWriter:
    """Adds to the files of arrays, and says now and then how far they are whole."""

    def __init__(self, folder: Path, arrays: Sequence[str], numbered: Sequence[str]) -> None:
        self.folder, self.arrays, self.numbered = folder, arrays, numbered
        make_folder(folder)
        state = cast("_State | None", read_sealed(folder / _PROGRESS))
        files = [f"{name}{part}" for name in arrays for part in (IDS, ENDS)]
        if state is None or any(_size(folder / file) < state["sizes"][file] for file in files):
            state = self._begin(files)
        for file in files:
            cut(folder / file, state["sizes"][file])
        self.state = state
        self.bad_lines = tally_from_json(state["bad_lines"])
        self.too_long = tally_from_json(state["too_long"])
        self._saved_at = monotonic()

    def _begin(self, files: Sequence[str]) -> _State:
        """Files without samples, whatever was there."""
        with explain_refusal(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
        for file in files:
            fill_file(self.folder / file, bytes(WIDE.itemsize) if file.endswith(ENDS) else b"")
        return {
            "chunks": 0,
            "sizes": {file: _size(self.folder / file) for file in files},
            "ends": dict.fromkeys(self.arrays, 0),
            "next_number": dict.fromkeys(self.numbered, 0),
            "bad_lines": tally_to_json(BadLines()),
            "too_long": tally_to_json(BadLines()),
        }

    @property
    def samples(self) -> int:
        """Parts of the first array."""
        return self.state["sizes"][f"{self.arrays[0]}{ENDS}"] // WIDE.itemsize - 1

    def add(self, encoded: EncodedChunk) -> None:
        """Add the arrays of a chunk."""
        for name in self.arrays:
            self._add(name, encoded.arrays[name])
        self.bad_lines.merge(encoded.bad_lines)
        self.too_long.merge(encoded.too_long)
        self.state["chunks"] += 1
        if monotonic() - self._saved_at > _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Have all that was added outlive whatever happens."""
        for file in self.state["sizes"]:
            sync_file(self.folder / file)
        self.state["bad_lines"] = tally_to_json(self.bad_lines)
        self.state["too_long"] = tally_to_json(self.too_long)
        write_file(self.folder / _PROGRESS, seal(self.state))
        self._saved_at = monotonic()

    def _add(self, name: str, sequences: Sequences) -> None:
        state, ids, kind = self.state, sequences.ids, NARROW
        if name in self.numbered:
            first, kind = state["next_number"][name], WIDE
            ids = np.where(ids < 0, ids, ids + first)
            state["next_number"][name] = max(first, int(ids.max(initial=-1)) + 1)
        ends = sequences.offsets[1:] + state["ends"][name]
        state["ends"][name] += int(sequences.offsets[-1])
        for part, content in ((IDS, ids.astype(kind)), (ENDS, ends.astype(WIDE))):
            append(self.folder / f"{name}{part}", content.tobytes())
            state["sizes"][f"{name}{part}"] += content.nbytes


@contextmanager
def _results(
    encoder: ChunkEncoder, lines: Iterable[Chunk], processes: int
) -> Iterator[Iterator[tuple[int, EncodedChunk]]]:
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
) -> Iterator[tuple[int, EncodedChunk]]:
    waiting: deque[tuple[int, Future[EncodedChunk]]] = deque()
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
