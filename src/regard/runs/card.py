"""The card of a run folder, ``run.json``: the run's recipe, its changes, and its checksums."""

import re
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TypedDict, cast

import torch

from regard.checks import nearest
from regard.config import JsonValue, parse_json, read_toml, retired_settings
from regard.errors import RunError, SettingError, excerpt
from regard.fields import checked_table, hints_of, nearest_within
from regard.runs.files import (
    DamageError,
    RunWarning,
    checksum,
    explain_path,
    parse_sealed,
    read_checked,
    read_file,
    unseal,
)
from regard.tasks import DecodingConfig, RecipeTable, saved_recipe
from regard.version import __version__

CARD_FILE = "run.json"
RECIPE_FILE = "recipe.toml"
FORMAT = 1
SUFFIX = ".regard"  # of a bundle
# Bundles that come with the package, each with its card beside it.
SHIPPED = Path(__file__).parents[1] / "shipped"
_MOST_CARD = 2**24  # bytes


CHECKSUMS = "checksums.json"
_MOST_LISTING = 2**20  # bytes
# Endings of the files that tokenizers and labels are read from; others may lie beside them.
_READ = {".json", ".model", ".safetensors"}
# A path to somewhere below a folder: no part of it leads upwards, to a root or to a drive.
_INSIDE = re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\:\0]+/)*(?!\.{1,2}$)[^/\\:\0]+")

# Values before and from now on, by the name of the changed value: a setting's is dotted
# (``training.keep``).
Changes = Mapping[str, tuple[JsonValue, JsonValue]]

Change = TypedDict(
    "Change", {"update": int, "was": dict[str, JsonValue], "is": dict[str, JsonValue]}
)
Change.__doc__ = "Settings changed after an update: their values before, and since."


class _Card(TypedDict):
    format: int
    regard: str
    task: str
    finished: bool
    model: str | None  # checksum of the final weights
    summary: JsonValue


class Card(_Card, total=False):
    """Contents of ``run.json``. Keys of ``total=False`` are missing in some runs."""

    recipe: str  # checksum of the recipe's file
    name: object  # a file's name, which need not be UTF-8
    text: str | None  # a fingerprint of the training text
    threads: int
    processes: int  # where they are several
    pretrained_commit: str  # of the Hugging Face Hub, where training began with one of its models
    changes: list[Change]  # the oldest first
    tokenizer: str | None  # checksum of the tokenizer's listing


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of a run, besides its recipe.

    Attributes:
        name: The recipe's name, for people.
        text: A fingerprint of the text that is trained on, to know it again.
        processes: How many train it together.
        pretrained_commit: The commit of the checkpoint of the Hugging Face Hub that it begins with;
            None if it begins with none.
    """

    name: str | None = None
    text: str | None = None
    processes: int = 1
    pretrained_commit: str | None = None


class _Listing(TypedDict):
    """Contents of ``checksums.json``."""

    files: dict[str, str]


def is_run(path: str | Path) -> bool:
    """Whether a run has been made at ``path``, of whatever version and however damaged.

    Raises:
        RunError: The system does not say, since the path is too long, or is not ours to look into.

    Example:
        >>> import tempfile
        >>> from regard.runs import Run
        >>> home = Path(tempfile.mkdtemp())
        >>> Run.create(home / "run", {"task": "translation"}, "translation").close()
        >>> is_run(home / "run"), is_run(home)
        (True, False)
    """
    with explain_path(Path(path)):
        return (Path(path) / CARD_FILE).exists()


def new_card(task: str, recipe: str, provenance: Provenance) -> Card:
    """Contents of ``run.json`` for a new run; ``recipe`` is the checksum of its file."""
    card: Card = {
        "format": FORMAT,
        "regard": __version__,
        "task": task,
        "recipe": recipe,
        "name": provenance.name,
        "text": provenance.text,
        "threads": torch.get_num_threads(),
        "changes": [],
        "tokenizer": None,
        "finished": False,
        "model": None,
        "summary": None,
    }
    if provenance.processes > 1:
        card["processes"] = provenance.processes
    if provenance.pretrained_commit is not None:
        card["pretrained_commit"] = provenance.pretrained_commit
    return card


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
    return parse_sealed(unseal(content, where=card), Card, where=card)


def _near(path: Path) -> str | None:
    """Names the run of the most similar name: beside the path, in the folder of runs, shipped."""
    patterns = [
        (Path("runs"), "*"),
        (path.parent, "*"),
        (path.parent.parent, f"*/{escape(path.name)}"),
    ]
    runs = [
        card.parent for where, pattern in patterns for card in where.glob(f"{pattern}/{CARD_FILE}")
    ]
    shipped = (Path(bundle.stem) for bundle in SHIPPED.glob(f"*{SUFFIX}"))
    names, paths = {run.name: run for run in (*shipped, *runs)}, list(map(str, runs))
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
    made = card.get("format", FORMAT) if isinstance(card, dict) else FORMAT
    if type(made) is not int or made < 1:
        raise DamageError(
            f"{path / CARD_FILE} must have a format from 1 to {FORMAT}; got {excerpt(made)}. It is "
            "damaged."
        )
    if made > FORMAT:
        raise RunError(
            f"{path} was made by a newer version of regard (format {made});"
            f" this is {__version__}, which reads up to {FORMAT}. Upgrade regard."
        )


def read_initial_recipe(
    path: Path, expected: str | None, *, name: Path | None = None
) -> RecipeTable:
    """The recipe that a run was begun with, from its file; warnings call the run by its name."""
    try:
        if expected is not None and path.exists():
            read_checked(path, expected)
        table = _with_usable_search(read_toml(path), name or path.parent)
        return checked_table(str(path), saved_recipe(table), RecipeTable)
    except DamageError as error:
        raise DamageError(f"{error} Restore it from a copy; a run keeps its recipe.") from error
    except OSError as error:
        raise RunError(
            f"{path} must be readable; got {error.strerror!r}. Restore it from a copy."
        ) from error
    except SettingError as error:
        raise RunError(f"{error} The run folder is damaged; restore the file.") from error


def _with_usable_search(table: dict[str, JsonValue], run: Path) -> dict[str, JsonValue]:
    """Leave out settings of searches that are no longer any, and keep the others to their bounds.

    A model that has settings which are gone is refused.
    """
    decoding, data = table.get("decoding"), table.get("data")
    if not isinstance(decoding, Mapping):
        return table
    retired, usable = retired_settings(DecodingConfig, decoding), dict[str, JsonValue]()
    for name, value in retired.items():
        warnings.warn(
            f"{run} was made with decoding.{name} = {value!r}, which is no longer a setting; its "
            "outputs are searched for without it.",
            RunWarning,
            stacklevel=2,
        )
    hints = hints_of(DecodingConfig)
    for name, value in decoding.items():
        if name in retired:
            continue
        usable[name] = near = _nearest(value, hints.get(name))
        longest = data.get("max_length") if isinstance(data, Mapping) else None
        if name == "min_length" and isinstance(near, int) and isinstance(longest, int):
            usable[name] = min(near, longest)
        if usable[name] != value:
            warnings.warn(
                f"{run} was made with decoding.{name} = {value!r}, which is out of bounds now; "
                f"{usable[name]!r} is taken.",
                RunWarning,
                stacklevel=2,
            )
    return {**table, "decoding": usable}


def _nearest(value: JsonValue, hint: object) -> JsonValue:
    """The nearest number that an annotation allows; other values stay."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return nearest_within(value, hint)


def current_recipe(path: Path, card: Card, *, name: Path | None = None) -> RecipeTable:
    """The recipe of a run as it is now, which is of the task that the card names."""
    initial = read_initial_recipe(path / RECIPE_FILE, card.get("recipe"), name=name)
    if initial.get("task", card["task"]) != card["task"]:
        raise DamageError(
            f"{path / CARD_FILE} must be of the task that {RECIPE_FILE} names; got "
            f"{excerpt(card['task'])}, not {excerpt(initial['task'])}. The run folder is damaged."
        )
    return recipe_after(initial, card.get("changes", ()))


def recipe_after(recipe: RecipeTable, history: Sequence[Change]) -> RecipeTable:
    """The recipe as it is after all changes to it."""
    table = deepcopy(recipe)
    sections = cast(dict[str, dict[str, JsonValue]], table)
    for change in history:
        for name, value in change["is"].items():
            section, dot, key = name.partition(".")
            is_setting = isinstance(sections.get(section), dict) if dot else True
            if not is_setting or name not in change["was"]:
                raise DamageError(
                    f"changes of run.json must be of settings of the recipe; got {excerpt(name)}. "
                    "The run folder is damaged."
                )
            if dot:
                sections[section][key] = value
    return table


def format_changes(history: Sequence[Change]) -> list[str]:
    """The changes in lines for people."""
    return [
        f"since update {change['update']}: "
        + ", ".join(
            f"{name} = {_value(now)} ({_value(change['was'][name])} before)"
            for name, now in change["is"].items()
        )
        for change in history
    ]


def _value(value: JsonValue) -> str:
    return "none" if value is None else str(value)


def tokenizer_files(folder: Path, expected: str | None) -> dict[str, str]:
    """Checksums of the tokenizer's files by their paths, if the listing is the expected one."""
    if not folder.is_dir():
        raise RunError(
            f"{folder} must hold the tokenizer; there is none."
            " Training ended before it was saved: run it again."
        )
    listing = folder / CHECKSUMS
    content = read_file(listing, most=_MOST_LISTING)
    files = parse_sealed(unseal(content, where=listing), _Listing, where=listing)["files"]
    if expected not in (None, checksum(content)):
        raise RunError(
            f"{folder} must hold the tokenizer that the run began with; got another one. "
            "Restore it from a copy: the weights know only their own."
        )
    for name in files:
        if not _INSIDE.fullmatch(name):
            raise DamageError(
                f"{listing} must name files of the tokenizer; got {excerpt(name)}. It is damaged."
            )
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path != listing and path.suffix in _READ and name not in files:
            raise DamageError(
                f"{listing} must hold the checksum of each file of the tokenizer; it has none of "
                f"{name}. It is damaged."
            )
    return files


def check_tokenizer(folder: Path, expected: str | None) -> None:
    """Read every file of the tokenizer once; DamageError if one is not as it was saved."""
    for name, checksum_of_file in tokenizer_files(folder, expected).items():
        read_checked(folder / name, checksum_of_file)
