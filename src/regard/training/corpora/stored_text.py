"""A training text on disk: its sample, its held-out lines, its tokenizer, all of its ids."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from regard.config import JsonValue, as_table
from regard.errors import DataError
from regard.files import explain_refusal, sync_folder, write_file
from regard.progress import progress
from regard.runs.files import checksums, new_folder, seal
from regard.tasks import TASKS, AnyTask, Parts, Recipe
from regard.tasks.held_out import valid_share
from regard.tasks.settings.data import RunningTextData
from regard.tasks.streaming import Chunk, Shard, Stored, StreamedTask, streamed
from regard.text import BadLines
from regard.text.corpus import MappedArrays
from regard.text.reading.encodings import encoded_as
from regard.training.corpora.cache import (
    ABOUT,
    ENCODED,
    PARTIAL,
    SCAN,
    TOKENIZERS,
    as_json_text,
    default_cache,
    key_of,
    make_once,
    read_sealed,
    sums_of,
    tally_from_json,
    tally_to_json,
)
from regard.training.corpora.encoding import ChunkEncoder, encode_into
from regard.training.corpora.scanning import CHUNK_LINES, chunks, read_chunks, scan, write_lines
from regard.training.distributed.launching import count_cores

_SAMPLE, _HELD = "sample.jsonl", "held.jsonl"
# Settings of ``[data]`` that do not change the ids: the files, and the later use of the ids.
_LATER = {
    *("train", "valid", "test", "valid_share", "source_language", "target_language"),
    *("context", "overlap", "rate", "next_sentence", "source_end"),
}
# Examples of a sample from which the language of a text is told, and the like.
_FEW = 2000


@dataclass(frozen=True)
class StoredText:
    """A training text that is read in parts, and whose ids are on disk."""

    recipe: Recipe
    folder: Path
    shards: list[Shard]
    task: type[StreamedTask[object, object]]

    @classmethod
    def of(cls, recipe: Recipe, *, cache: str | Path | None = None) -> "StoredText":
        """The training text of a recipe, its lines counted once."""
        task = streamed(TASKS[recipe.task].task)
        assert task is not None
        shards = task.shards(recipe, "train")
        root = default_cache() if cache is None else Path(cache)
        sums = sums_of(shards, root)
        made_of: dict[str, JsonValue] = {"files": sums, "held": _held_by(recipe, task)}
        if recipe.encoding is not None:
            made_of["encoding"] = recipe.encoding
        text = cls(recipe, root / key_of(made_of), shards, task)
        scanned = text.folder / SCAN
        make_once(text.folder, lambda: read_sealed(scanned) is not None, text._scan)
        return text

    @property
    def num_lines(self) -> int:
        """Lines to learn from."""
        return cast(int, self._scanned["until"])

    def sample(self, most: int | None = None) -> list[object]:
        """Examples from all over the text, at most about so many, to learn a tokenizer from."""
        examples: list[object] = []
        for chunk in self._sampled(_SAMPLE):
            examples += self.task.of_chunk(self.recipe, chunk)
            if most is not None and len(examples) >= most:
                break
        return examples[:most]

    def parts(self, bad_lines: BadLines | None = None) -> Parts[object]:
        """Examples enough to tell the language, and the whole validation part."""
        return Parts(self.sample(_FEW), self.valid(bad_lines))

    def valid(self, bad_lines: BadLines | None = None) -> list[object]:
        """Validation examples: the recipe's file, or a held-out part of the text."""
        kind = TASKS[self.recipe.task].task
        named = kind.read(self.recipe, "valid", bad_lines=bad_lines)
        if named:
            return list(named)
        return [
            example
            for chunk in self._sampled(_HELD)
            for example in self.task.of_chunk(self.recipe, chunk)
        ]

    def learned(self, recipe: Recipe) -> AnyTask:
        """The task with its vocabularies, learned from the sample or cached."""
        kind = TASKS[self.recipe.task].task
        vocabularies = self._cache_folder(TOKENIZERS, as_table(recipe.tokenizer))

        def learn() -> None:
            vocabularies.parent.mkdir(exist_ok=True)
            learned = kind.learn(recipe, self.sample())
            with new_folder(vocabularies) as folder:
                learned.save(folder)

        make_once(self.folder, vocabularies.is_dir, learn)
        return kind.load(recipe, vocabularies)

    def _cache_folder(self, folder: str, tokenizer: JsonValue) -> Path:
        """Folder for a result that depends on the data's settings and a tokenizer."""
        data = {k: v for k, v in as_table(self.recipe.data).items() if k not in _LATER}
        key = key_of({"task": self.recipe.task, "data": data, "tokenizer": tokenizer})
        return self.folder / folder / key

    def encoded(
        self,
        task: AnyTask,
        *,
        processes: int | None = None,
        bad_lines: BadLines | None = None,
        too_long: BadLines | None = None,
    ) -> Stored[object]:
        """All samples as ids, encoded now unless they are cached; counts those left out."""
        assert isinstance(task, StreamedTask)
        with TemporaryDirectory() as saved:
            tokenizer = Path(saved)
            task.save(tokenizer)
            stored = self._cache_folder(ENCODED, checksums(tokenizer))
            make_once(
                self.folder,
                lambda: read_sealed(stored / ABOUT) is not None,
                lambda: self._encode(stored, tokenizer, task, processes),
            )
        about = read_sealed(stored / ABOUT)
        assert about is not None
        for tally, name in ((bad_lines, "bad_lines"), (too_long, "too_long")):
            if tally is not None:
                tally.merge(tally_from_json(about[name]))
        return task.stored(MappedArrays(stored, task.stored_as, task.numbered))

    def _encode(
        self,
        target: Path,
        tokenizer: Path,
        task: StreamedTask[object, object],
        processes: int | None,
    ) -> None:
        """Fill the folder of encoded samples, which appears when it is complete."""
        scanned = self._scanned
        lines, until = cast(list[int], scanned["lines"]), cast(int, scanned["until"])
        partial = target.with_name(target.name + PARTIAL)
        held = list(self._sampled(_HELD)) if task.held_out == "hash" else []
        encoder = ChunkEncoder(self.recipe.table(), tokenizer, held)
        with progress("encoding", until) as advance:
            samples, bad_lines, too_long = encode_into(
                partial,
                task,
                lambda skip: self._chunks(lines, until, skip, advance),
                encoder,
                processes=processes or count_cores(),
                progress=advance,
            )
        if not samples:
            reasons = [cases[0] for cases in (too_long.examples | bad_lines.examples).values()]
            raise DataError(
                f"data.train must hold {self.unit} that can be learned from; got none. "
                f"{' '.join(reasons[:1])}"
            )
        about = {
            "samples": samples,
            "bad_lines": tally_to_json(bad_lines),
            "too_long": tally_to_json(too_long),
        }
        write_file(partial / ABOUT, seal(about))
        with explain_refusal(target):
            shutil.rmtree(target, ignore_errors=True)
            partial.rename(target)
        sync_folder(target.parent)

    def _chunks(
        self, lines: list[int], until: int, skip: int, advance: Callable[[int], None]
    ) -> Iterator[Chunk]:
        advance(min(until, skip * CHUNK_LINES))
        return chunks(self.shards, lines, skip=skip, until=until)

    def _scan(self) -> None:
        """Scan all lines; the folder of results appears when it is complete."""
        held_by = _held_by(self.recipe, self.task)
        with progress("reading the text") as advance:
            summary = scan(
                self.shards,
                None if held_by is None else self.task.held_out,
                share=_held_share(self.recipe),
                progress=advance,
            )
        if not summary.until:
            raise DataError("data.train must hold text to learn from; got nothing.")
        if held_by is not None and not summary.held:
            raise DataError(
                f"data.train must hold more {self.unit} where data.valid is not set; got "
                f"{summary.until} lines."
            )
        write_lines(self.folder / _SAMPLE, summary.sample)
        write_lines(self.folder / _HELD, summary.held)
        about = {
            "files": [str(file) for shard in self.shards for file in shard if file is not None],
            "lines": summary.lines,
            "headers": [as_json_text(header) for header in summary.headers],
            "until": summary.until,
        }
        write_file(self.folder / SCAN, seal(about))

    def _sampled(self, name: str) -> Iterator[Chunk]:
        headers = cast(list[str], self._scanned["headers"])
        return read_chunks(self.folder / name, self.shards, headers)

    @cached_property
    def _scanned(self) -> dict[str, JsonValue]:
        table = read_sealed(self.folder / SCAN)
        assert table is not None
        return table

    @property
    def unit(self) -> str:
        """Unit of the examples, in the plural."""
        return TASKS[self.recipe.task].task.unit


def parts_of(recipe: Recipe) -> Parts[object]:
    """Training and validation examples of a run; of a text on disk, a sample of the former."""
    with encoded_as(recipe.encoding):
        if recipe.training.get("corpus") != "disk":
            return TASKS[recipe.task].task.read_parts(recipe)
        cache = recipe.training.get("cache")
        text = StoredText.of(recipe, cache=None if cache is None else str(cache))
        return Parts(text.sample(), text.valid())


def _held_by(recipe: Recipe, task: type[StreamedTask[object, object]]) -> JsonValue:
    """Settings that decide the held-out lines; None where the recipe names files."""
    return None if recipe.named("valid") else [task.held_out, _held_share(recipe)]


def _held_share(recipe: Recipe) -> float:
    if isinstance(recipe.data, RunningTextData):
        return recipe.data.valid_share
    return valid_share(recipe)
