"""What was changed about a run while it was trained, and at which update: a part of its card."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any


def entry(update: int, changes: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """What is noted of changes.

    Args:
        update: The last one before them.
        changes: By the name of what is changed, a setting's dotted (``training.keep``): what it
            was, and what it is from now on.
    """
    return {
        "update": update,
        "was": {name: before for name, (before, _) in changes.items()},
        "is": {name: now for name, (_, now) in changes.items()},
    }


def changed(recipe: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The recipe as it is after all changes to it.

    Example:
        >>> history = [entry(400, {"training.keep": (5, 2), "threads": (2, 1)})]
        >>> changed({"training": {"keep": 5, "seed": 1}}, history)
        {'training': {'keep': 2, 'seed': 1}}
    """
    table = deepcopy(dict(recipe))
    for each in history:
        for name, value in each["is"].items():
            section, found, key = name.partition(".")
            if found:
                table[section][key] = value
    return table


def told(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """The changes in lines for people.

    Example:
        >>> told([entry(400, {"training.keep": (5, 2), "training.patience": (None, 3)})])
        ['since update 400: training.keep = 2 (5 before), training.patience = 3 (none before)']
    """
    return [
        f"since update {each['update']}: "
        + ", ".join(
            f"{name} = {_value(now)} ({_value(each['was'][name])} before)"
            for name, now in each["is"].items()
        )
        for each in history
    ]


def _value(value: Any) -> str:
    return "none" if value is None else str(value)
