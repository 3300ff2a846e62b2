"""History of a run's settings: changes during training, and their updates; a part of its card."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TypedDict, cast

from regard.config import JsonValue
from regard.errors import excerpt
from regard.runs.files import DamageError
from regard.tasks import RecipeTable

# What was and what is from now on, by the name of what is changed: a setting's is dotted
# (``training.keep``).
Changes = Mapping[str, tuple[JsonValue, JsonValue]]

Change = TypedDict(
    "Change", {"update": int, "was": dict[str, JsonValue], "is": dict[str, JsonValue]}
)
Change.__doc__ = "Settings changed at an update: the last one before, what was, and what is."


def entry(update: int, changes: Changes) -> Change:
    """Record of changes after an update."""
    return {
        "update": update,
        "was": {name: before for name, (before, _) in changes.items()},
        "is": {name: now for name, (_, now) in changes.items()},
    }


def changed(recipe: RecipeTable, history: Sequence[Change]) -> RecipeTable:
    """The recipe as it is after all changes to it."""
    table = deepcopy(recipe)
    sections = cast(dict[str, dict[str, JsonValue]], table)
    for each in history:
        for name, value in each["is"].items():
            section, dot, key = name.partition(".")
            is_known = isinstance(sections.get(section), dict) if dot else True
            if not is_known or name not in each["was"]:
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
        f"since update {each['update']}: "
        + ", ".join(
            f"{name} = {_value(now)} ({_value(each['was'][name])} before)"
            for name, now in each["is"].items()
        )
        for each in history
    ]


def _value(value: JsonValue) -> str:
    return "none" if value is None else str(value)
