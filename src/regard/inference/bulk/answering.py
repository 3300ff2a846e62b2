"""One shard answered: a file of rows in, a file of as many answers out, whole or not at all."""

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import torch

from regard.config import JsonValue
from regard.devices.kinds import AUTO, Precision
from regard.errors import DataError
from regard.fields import Count, checked, hints_of
from regard.files import explain_refusal, sync_folder
from regard.inference.bulk.shards import Shard
from regard.inference.lines import AnsweredLine, answers, predicting
from regard.inference.loading import load_run
from regard.text.reading.encodings import encoded_as
from regard.text.reading.line_groups import groups_of

# Begins the names of files that are being written.
WRITING = ".tmp-"

OutputFormat = Literal["text", "jsonl"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkOptions:
    """How rows are answered, by every worker alike.

    Attributes:
        output_format: Lines of text, or a JSON object a line.
        decoding: Settings of the search over those of the recipe.
        precision: Type of the weights.
        device: Where each worker computes.
        threads: Of the processor, for each worker. The order in which sums are rounded depends on
            it: with as many the answers are the same byte for byte, wherever they are made.

    Raises:
        SettingError: The format or the precision is none of the choices, or threads are none.

    Example:
        >>> BulkOptions(output_format="text", decoding={"beam_size": 1})
        BulkOptions(output_format='text', decoding={'beam_size': 1},
                    precision='auto', device='auto', threads=1)
    """

    output_format: OutputFormat = "jsonl"
    decoding: dict[str, JsonValue] = field(default_factory=dict)
    precision: Precision = "auto"
    device: str = AUTO
    threads: Count = 1

    def __post_init__(self) -> None:
        hints = hints_of(type(self))
        for name in ("output_format", "precision", "threads"):
            checked(name, getattr(self, name), hints[name])


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardReport:
    """Result of a shard."""

    name: str
    rows: int  # answered, or noted as errors
    errors: int
    problem: str | None  # why the file could not be answered at all


class Answerer:
    """A run in use, which answers shards one after the other."""

    def __init__(self, run: Path, options: BulkOptions) -> None:
        torch.set_num_threads(options.threads)
        self._options = options
        self._use = use = load_run(run, precision=options.precision, device=options.device)
        self._search = use.search(use.recipe, options.decoding)

    def answer(self, shard: Shard) -> ShardReport:
        """Answer a shard; answers appear when all of them, and notes of errors, are on the disk."""
        writer, n_best = _Writer(shard), 1 if self._search is None else self._search.n_best
        try:
            with encoded_as(self._use.recipe.encoding):
                for line in self._answered(shard):
                    printed = line.printed(writer.rows + 1, self._options.output_format, n_best)
                    writer.add("".join(f"{text}\n" for text in printed), line)
            writer.finish()
        except DataError as error:
            return ShardReport(name=shard.name, rows=0, errors=0, problem=str(error))
        finally:
            writer.close()
        return ShardReport(name=shard.name, rows=writer.rows, errors=writer.errors, problem=None)

    def _answered(self, shard: Shard) -> Iterator[AnsweredLine]:
        fields = self._use.task.input_fields()
        groups, ending = groups_of(shard.source, fields, name=shard.name)
        answering = predicting(self._use, ending=ending, decoding=self._search)
        for group in answers(groups, answering, skip_bad_lines=True):
            yield from group


class _Writer:
    """The files of a shard while they are written, under names that nobody else has."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._token = secrets.token_hex(8)
        self._files: dict[Path, BinaryIO] = {}
        self.rows = self.errors = 0

    def add(self, text: str, line: AnsweredLine) -> None:
        """Write a row's answer; and its problem, beside."""
        self.rows += 1
        self._write(self._shard.answers, text)
        if line.problem is not None:
            self.errors += 1
            noted = {"row": self.rows, "where": line.where, "problem": line.problem}
            self._write(self._shard.errors, json.dumps(noted, ensure_ascii=False) + "\n")

    def finish(self) -> None:
        """Put both in their places, the answers last."""
        self._open(self._shard.answers)
        with explain_refusal(self._shard.answers):
            self._shard.errors.unlink(missing_ok=True)  # of a shard that was answered before
        for path in sorted(self._files, key=lambda path: path == self._shard.answers):
            with explain_refusal(path):
                self._files[path].flush()
                os.fsync(self._files[path].fileno())
                self._files[path].close()
                self._temporary(path).replace(path)
        sync_folder(self._shard.answers.parent)

    def close(self) -> None:
        """Leave nothing half written."""
        for path, file in self._files.items():
            file.close()
            self._temporary(path).unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        file = self._open(path)
        with explain_refusal(path):
            file.write(text.encode("utf-8", "surrogateescape"))

    def _open(self, path: Path) -> BinaryIO:
        if path not in self._files:
            with explain_refusal(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                self._files[path] = self._temporary(path).open("wb")
        return self._files[path]

    def _temporary(self, path: Path) -> Path:
        return path.with_name(f"{WRITING}{self._token}-{path.name}")
