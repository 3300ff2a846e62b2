"""``regard recipes`` and ``regard settings``: the recipes, and their settings."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, TypedDict

from cyclopts import App

from regard.checks import choose
from regard.cli.options import OPTIONS, sections
from regard.cli.output import say
from regard.config import JsonValue, read_toml
from regard.fields import meanings_of
from regard.training.recipes.packaged import packaged_recipe, packaged_recipes

if TYPE_CHECKING:
    from regard.tasks import Recipe

__all__ = ["packaged_recipe", "packaged_recipes", "recipes", "settings"]

_FIGURES = files("regard") / "recipes" / "figures.json"
_WIDTH = 80
# Settings of models that say how wide one is, the first that it has; and how deep.
_WIDTHS = ("model_dim", "hidden_dim", "channels", "embed_dim")
_DEPTHS = ("num_encoder_layers", "num_decoder_layers", "num_layers", "num_hops")
_TIMES = ("minutes", "updates", "epochs")

recipes = App(
    name="recipes",
    help="List the recipes that come with regard, or print one.",
    help_format="markdown",
    default_parameter=OPTIONS,
)


class _Figure(TypedDict):
    """Recorded figures of a recipe, as ``python -m benchmarks.tables`` writes them."""

    figure: str
    beside: str
    loses: bool
    minutes: float | None
    old: bool


@recipes.default
def list_recipes(job: str | None = None, /) -> None:
    """List the recipes by job: purpose, model and its size, training time, result.

    Example: `regard recipes tagging`

    The figures are those of docs/measured.md; ▼ marks one that is no better than the simple method
    that stands beside it, and † one that has not been found to hold since the code changed.
    Minutes are of two CPU cores; where none were measured, the
    updates or epochs stand there that the recipe makes.

    Args:
        job: Only recipes of this task, or whose name has this in it; by default all.
    """
    recipes_of_job = _rows(job)
    if not recipes_of_job:
        choose("the job", job, dict.fromkeys(sorted({row[0] for row in _rows(None)})))
    for task, rows in groupby(sorted(recipes_of_job), key=itemgetter(0)):
        say(f"{task}\n")
        for _, name, *columns in rows:
            for text, indent in zip((name, *columns), ("  ", "      "), strict=True):
                lines = wrap(text, _WIDTH - len(indent), break_on_hyphens=False)
                say("\n".join(f"{indent}{line}" for line in lines))
        say()


@recipes.command
def show(name: str, /) -> None:
    """Print a recipe with its comments, ready to be kept and changed.

    Example: `regard recipes show tagging-words > mine.toml`, then `regard train mine.toml`

    Args:
        name: The recipe.
    """
    say(packaged_recipe(name).read_text(encoding="utf-8").rstrip())


def _rows(job: str | None) -> list[tuple[str, ...]]:
    """The job of each recipe, its name and purpose, and its size, time and figure."""
    from regard.tasks import read_recipe

    measured: Mapping[str, _Figure] = json.loads(_FIGURES.read_text(encoding="utf-8"))
    rows: list[tuple[str, ...]] = []
    for name, purpose in packaged_recipes().items():
        table = read_toml(packaged_recipe(name))
        task = str(table["task"])
        if job is None or job == task or job in name:
            recipe = read_recipe(packaged_recipe(name))
            figure = measured.get(name)
            size = ", ".join(filter(None, (_size(recipe), _time(table, figure))))
            result = "" if figure is None else f"; {_format_figure(figure)}"
            rows.append((task, f"{name}: {purpose}", f"{size}{result}"))
    return rows


def _format_figure(figure: _Figure) -> str:
    mark = (" ▼" if figure["loses"] else "") + (" †" if figure["old"] else "")
    baseline = f" ({figure['beside']})" if figure["beside"] else ""
    return f"{figure['figure']}{mark}{baseline}"


def _size(recipe: "Recipe") -> str:
    """The architecture, its width and its depths, such as ``transformer 128 × 4 + 4``."""
    if "pretrained" in recipe.training:
        return f"{recipe.model_type} as pretrained"
    model = recipe.table()["model"]
    width = next((model[name] for name in _WIDTHS if model.get(name)), None)
    depths = [str(model[name]) for name in _DEPTHS if model.get(name)]
    deep = f" × {' + '.join(depths)}" if depths else ""
    return f"{recipe.model_type}{f' {width}' if width else ''}{deep}"


def _time(table: Mapping[str, JsonValue], figure: _Figure | None) -> str:
    if figure is not None and figure["minutes"] is not None:
        return f"{figure['minutes']:g} min"
    training = table.get("training")
    settings = training if isinstance(training, Mapping) else {}
    return next((f"{settings[name]:,} {name}" for name in _TIMES if name in settings), "")


def settings(table_or_task: str | None = None, /) -> None:
    """Print the settings of recipes: each with its default and its meaning.

    Example: `regard settings training`

    Example: `regard settings classification`

    Each can be set in a recipe file, or over a recipe by `--set training.seed=2`.

    Args:
        table_or_task: data, tokenizer, model, head, training or decoding; or a task, for the
            settings of its recipes; by default all of them.
    """
    from regard.tasks import TASKS

    every = sections(TASKS)
    if table_or_task is None:
        chosen = list(every.values())
    else:
        choose("what to list", table_or_task, dict.fromkeys([*every, *TASKS]))
        of_task = sections({table_or_task: TASKS[table_or_task]}) if table_or_task in TASKS else {}
        chosen = list(of_task.values()) or [every[table_or_task]]
    for described in chosen:
        for title, config in described:
            say(title)
            for line in _described(config):
                say(f"  {line}")
            say()


def _described(config: type) -> Iterator[str]:
    meanings = meanings_of(config)
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
