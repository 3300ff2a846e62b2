"""The card of a run folder, ``run.json``, and the recipe that it was begun with."""

import warnings
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import TypedDict

import torch

from regard.choices import nearest
from regard.config import JsonValue, parse_json, read_toml, retired_settings
from regard.errors import RunError, SettingError
from regard.fields import checked_table
from regard.runs.files import (
    DamageError,
    RunWarning,
    explain_path,
    known_table,
    read_checked,
    read_file,
    unseal,
)
from regard.runs.history import Change
from regard.tasks import DecodingConfig, RecipeTable, saved_recipe
from regard.version import __version__

CARD_FILE = "run.json"
RECIPE_FILE = "recipe.toml"
FORMAT = 1
_MOST_CARD = 2**24  # bytes


class _Card(TypedDict):
    format: int
    regard: str
    task: str
    finished: bool
    model: str | None
    summary: JsonValue


class _Seldom(TypedDict, total=False):
    processes: int


class Card(_Card, _Seldom, total=False):
    """Contents of ``run.json``. Keys of ``total=False`` are missing in runs made before them."""

    recipe: str
    name: object  # a file's name, which need not be UTF-8
    text: str | None
    threads: int
    changes: list[Change]
    tokenizer: str | None


def new_card(
    task: str, *, recipe: str, name: str | None, text: str | None, processes: int = 1
) -> Card:
    """Contents of ``run.json`` for a new run."""
    together: _Seldom = {} if processes == 1 else {"processes": processes}
    return {
        "format": FORMAT,
        "regard": __version__,
        "task": task,
        "recipe": recipe,
        "name": name,
        "text": text,
        "threads": torch.get_num_threads(),
        **together,
        "changes": [],
        "tokenizer": None,
        "finished": False,
        "model": None,
        "summary": None,
    }


def read_card(path: Path) -> Card:
    """Read ``run.json`` of the run folder ``path``."""
    with explain_path(path):
        kind = "a folder" if path.is_dir() else "a file" if path.exists() else "nothing there"
    if kind != "a folder":
        cure = _near(path) if kind == "nothing there" else None
        raise RunError(
            f"{path} must be a run folder; got {kind}. {cure or 'Make one with `regard train`.'}"
        )
    card = path / CARD_FILE
    if not card.exists():
        raise RunError(
            f"{path} must be a run folder; {CARD_FILE} is missing. Make a run with `regard train`."
        )
    content = read_file(card, most=_MOST_CARD)
    _check_format(path, content)
    return known_table(unseal(content, where=card), Card, where=card)


def _near(path: Path) -> str | None:
    """Names the run with the most similar name: beside the path, or in the folder of runs."""
    patterns = [
        (Path("runs"), "*"),
        (path.parent, "*"),
        (path.parent.parent, f"*/{escape(path.name)}"),
    ]
    runs = [card.parent for where, each in patterns for card in where.glob(f"{each}/{CARD_FILE}")]
    names, paths = {run.name: run for run in runs}, list(map(str, runs))
    if path.name in names:  # of another folder
        near = nearest(str(path), paths)
    else:
        near = nearest(path.name, names)
        near = near and str(names[near])
    return f"Did you mean {near}?" if near else None


def _check_format(path: Path, content: bytes) -> None:
    """Before the checksum, since a newer version may compute another one."""
    try:
        card = parse_json(content)
    except ValueError:
        return  # damaged, and `unseal` says so
    made = card.get("format") if isinstance(card, dict) else None
    if isinstance(made, int) and made > FORMAT:
        raise RunError(
            f"{path} was made by a newer version of regard (format {made});"
            f" this is {__version__}, which reads up to {FORMAT}. Upgrade regard."
        )


def read_begun_recipe(path: Path, expected: str | None) -> RecipeTable:
    """The recipe that a run was begun with, from its file."""
    try:
        if expected is not None and path.exists():
            read_checked(path, expected)
        table = _without_retired(read_toml(path), path.parent)
        return checked_table(str(path), saved_recipe(table), RecipeTable)
    except DamageError as error:
        raise DamageError(f"{error} Restore it from a copy; a run keeps its recipe.") from error
    except OSError as error:
        raise RunError(
            f"{path} must be readable; got {error.strerror!r}. Restore it from a copy."
        ) from error
    except SettingError as error:
        raise RunError(f"{error} The run folder is damaged; restore the file.") from error


def _without_retired(table: dict[str, JsonValue], run: Path) -> dict[str, JsonValue]:
    """Leave out settings of searches that are no longer any; a model that has such is refused."""
    decoding = table.get("decoding")
    if not isinstance(decoding, Mapping):
        return table
    retired = retired_settings(DecodingConfig, decoding)
    for name, value in retired.items():
        warnings.warn(
            f"{run} was made with decoding.{name} = {value!r}, which is no longer a setting; its "
            "outputs are searched for without it.",
            RunWarning,
            stacklevel=2,
        )
    return {**table, "decoding": {k: v for k, v in decoding.items() if k not in retired}}
