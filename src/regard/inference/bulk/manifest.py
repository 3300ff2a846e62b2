"""Manifest of a folder of answers: those of two models or options never mix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from regard.config import JsonValue, as_saved, as_table
from regard.errors import RunError, SettingError
from regard.inference.bulk.answering import WRITING, BulkOptions
from regard.inference.bulk.shards import ERRORS, Shard
from regard.runs import Run
from regard.runs.files import read_file, seal, unseal, write_file
from regard.tasks import DecodingConfig, recipe_from_table
from regard.version import __version__

MANIFEST = "bulk.json"
FORMAT = 1
# What stands in a folder before the first manifest.
_BEFORE = {"lock"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of ``bulk.json``."""

    made_with: Mapping[str, JsonValue]
    shards: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    stale: Sequence[str] = ()

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """That of a folder of answers; None of a new one."""
        path = folder / MANIFEST
        if not path.exists():
            _check_empty(folder)
            return None
        table = unseal(read_file(path), where=path)
        if table.get("format") != FORMAT:
            raise RunError(
                f"{path} must have format {FORMAT}; got {table.get('format')}. A newer version of "
                "regard wrote it: install that version."
            )
        return cls(
            cast(Mapping[str, JsonValue], table["made_with"]),
            cast(Mapping[str, Mapping[str, JsonValue]], table["shards"]),
            cast(Sequence[str], table["stale"]),
        )

    def write(self, folder: Path) -> None:
        """Put it into a folder, whole."""
        table: dict[str, object] = {"format": FORMAT, "regard": __version__}
        table |= {"made_with": self.made_with, "shards": self.shards, "stale": list(self.stale)}
        write_file(folder / MANIFEST, seal(table))


def identity(run: Run, options: BulkOptions) -> dict[str, JsonValue]:
    """Fingerprint of the model and options that determine the answers.

    Raises:
        RunError: The run has not finished training, so that its weights may change.
        SettingError: The search is told something where nothing is searched for.
    """
    run.check_finished()
    decoding = recipe_from_table(run.recipe).decoding
    if options.decoding and (decoding is None or options.embed):
        raise SettingError(
            f"{next(iter(options.decoding))} must be left out where nothing is searched for; "
            f"got it for {'vectors' if options.embed else f'a run of {run.task}'}."
        )
    return {
        "task": run.task,
        "weights": run.model_checksum,
        "tokenizer": run.tokenizer_checksum,
        "embed": options.embed,
        "decoding": None if decoding is None else as_table(decoding.changed(**options.decoding)),
        "output_format": options.output_format,
        "precision": options.precision,
        "device": options.device,
        "threads": options.threads,
    }


def known(shard: Shard) -> dict[str, JsonValue]:
    """Fingerprint of a shard's file."""
    return {"source": str(shard.source), "size": shard.size, "modified": shard.modified}


def check_same(folder: Path, before: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> None:
    """Raise RunError if a folder's answers were made with another model or other options."""
    for name, value in now.items():
        if before.get(name) == value:
            continue
        if name in ("weights", "tokenizer"):
            what = f"the {name} of the run are others"
        elif isinstance(value, Mapping) and isinstance(was := before.get(name), Mapping):
            was = as_saved(DecodingConfig, was)
            changed = [key for key in {**value, **was} if value.get(key) != was.get(key)]
            if not changed:
                continue
            key = changed[0]
            what = f"{name}.{key} was {was.get(key)!r}, now {value.get(key)!r}"
        else:
            what = f"{name} was {before.get(name)!r}, now {value!r}"
        raise RunError(
            f"{folder} must go on as it was begun; {what}. Choose another folder, or make all "
            "answers in it anew: --remake."
        )


def remove(shards: Sequence[str], folder: Path, *, endings: Sequence[str]) -> None:
    """Delete answers and notes of errors, by the names of their shards."""
    for name in shards:
        for ending in (*endings, ERRORS):
            (folder / f"{name}{ending}").unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Delete what a killed worker was writing."""
    for left in folder.rglob(f"{WRITING}*"):
        if left.is_file():
            left.unlink(missing_ok=True)


def _check_empty(folder: Path) -> None:
    found = sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in _BEFORE and not path.name.startswith(WRITING)
    )
    if found:
        raise RunError(
            f"{folder} must be a new or empty folder, or one of an earlier job; {MANIFEST} is "
            f"missing, and it holds {', '.join(found[:3])}. Choose another: --output FOLDER."
        )
