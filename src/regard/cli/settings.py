"""``regard settings``: what a recipe may say."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from regard.choices import choose
from regard.cli.output import say

# A setting in the "Attributes:" of a docstring: its name, and its meaning up to the next one.
_ATTRIBUTE = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)


def settings(section: str | None = None, /) -> None:
    """Print what a recipe may say: each setting, its default and what it means.

    Example: `regard settings training`

    Each can be set in a recipe file, or over a recipe by `--set training.seed=2`.

    Args:
        section: data, tokenizer, model, training or decoding; by default all of them.
    """
    sections = _sections()
    chosen = list(sections) if section is None else [section]
    for name in chosen:
        for title, config in choose("section", name, sections):
            say(title)
            for line in _described(config):
                say(f"  {line}")
            say()


def _sections() -> dict[str, list[tuple[str, type[Any]]]]:
    """For each table of a recipe, its heading and the class that reads it."""
    from regard.models import MODELS
    from regard.tasks import DataConfig, DecodingConfig
    from regard.text import TokenizerConfig
    from regard.training import TrainingConfig

    models = [(f'[model] with type = "{kind}"', MODELS[kind][0]) for kind in MODELS]
    return {
        "data": [("[data]", DataConfig)],
        "tokenizer": [("[tokenizer]", TokenizerConfig)],
        "model": models,
        "training": [("[training]", TrainingConfig)],
        "decoding": [("[decoding]", DecodingConfig)],
    }


def _described(config: type[Any]) -> Iterator[str]:
    _, _, listed = inspect.cleandoc(config.__doc__ or "").partition("Attributes:\n")
    meanings = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(listed)}
    for field in fields(config):
        yield f"{field.name} = {_default(field)}  {meanings.get(field.name, '')}".rstrip()


def _default(field: Field[Any]) -> str:
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
