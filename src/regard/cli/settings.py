"""``regard settings``: what a recipe may say."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING

from regard.choices import choose
from regard.cli.output import say

if TYPE_CHECKING:
    from regard.tasks import TaskEntry

# A setting in the "Attributes:" of a docstring: its name, and its meaning up to the next one.
_ATTRIBUTE = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def settings(what: str | None = None, /) -> None:
    """Print what a recipe may say: each setting, its default and what it means.

    Example: `regard settings training`

    Example: `regard settings classification`

    Each can be set in a recipe file, or over a recipe by `--set training.seed=2`.

    Args:
        what: data, tokenizer, model, head, training or decoding; or a task, for what recipes of it
            may say; by default all of them.
    """
    from regard.tasks import TASKS

    every = sections(TASKS)
    if what is None:
        chosen = list(every.values())
    else:
        choose("what to list", what, dict.fromkeys([*every, *TASKS]))
        of_task = sections({what: TASKS[what]}) if what in TASKS else {}
        chosen = list(of_task.values()) or [every[what]]
    for described in chosen:
        for title, config in described:
            say(title)
            for line in _described(config):
                say(f"  {line}")
            say()


def sections(kinds: Mapping[str, "TaskEntry"]) -> dict[str, list[tuple[str, type]]]:
    """For each table of recipes of these tasks, its headings and the classes that read it."""
    from regard.training import TrainingConfig

    names = ("data", "tokenizer", "model", "head", "training", "decoding")
    tasks: dict[str, dict[tuple[str, type], list[str]]] = {name: {} for name in names}
    for task, kind in kinds.items():
        single = {name: getattr(kind, name) for name in ("data", "tokenizer", "head", "decoding")}
        found = [(name, f"[{name}]", config) for name, config in single.items() if config]
        found += [
            ("model", f'[model] with type = "{name}"', architecture.config)
            for name, architecture in kind.models.items()
        ]
        for name, heading, config in [*found, ("training", "[training]", TrainingConfig)]:
            tasks[name].setdefault((heading, config), []).append(task)
    return {
        name: [
            (heading if len(of) == len(kinds) else f"{heading} of {', '.join(of)}", config)
            for (heading, config), of in described.items()
        ]
        for name, described in tasks.items()
        if described
    }


def _described(config: type) -> Iterator[str]:
    meanings: dict[str, str] = {}
    for kind in reversed(config.__mro__):  # settings that classes share are explained once
        _, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
        listed, _, _ = rest.partition("\n\n")
        meanings |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(listed)}
    for field in fields(config):
        yield f"{field.name} = {_default(field)}  {meanings.get(field.name, '')}".rstrip()


def _default(field: Field[object]) -> str:
    """As it would stand in a recipe."""
    value = field.default
    if value is MISSING:
        value = field.default_factory() if field.default_factory is not MISSING else None
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else str(value)
