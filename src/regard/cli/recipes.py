"""The recipes that come with regard: ``regard recipes``."""

import json
from collections.abc import Mapping
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, TypedDict, cast

from cyclopts import App

from regard.choices import choose
from regard.cli.options import OPTIONS
from regard.cli.output import say
from regard.config import JsonValue, read_toml
from regard.training.recipes.resolving import packaged_recipe, packaged_recipes

if TYPE_CHECKING:
    from regard.tasks import Recipe

__all__ = ["packaged_recipe", "packaged_recipes", "recipes"]

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


@recipes.default
def listed(job: str | None = None, /) -> None:
    """List the recipes by job: purpose, model and its size, how long it trains, what came of it.

    Example: `regard recipes tagging`

    The figures are those of docs/measured.md; ▼ marks one that is no better than what needs no
    model, which stands beside it. Minutes are of two CPU cores; where none were measured, the
    updates or epochs stand there that the recipe makes.

    Args:
        job: Only recipes of this task, or whose name has this in it; by default all.
    """
    found = _rows(job)
    if not found:
        choose("the job", job, dict.fromkeys(sorted({row[0] for row in _rows(None)})))
    for task, rows in groupby(sorted(found), key=itemgetter(0)):
        say(f"{task}\n")
        for _, name, *others in rows:
            for text, indent in zip((name, *others), ("  ", "      "), strict=True):
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

    measured = _figures()
    rows: list[tuple[str, ...]] = []
    for name, purpose in packaged_recipes().items():
        table = read_toml(packaged_recipe(name))
        task = str(table["task"])
        if job is None or job == task or job in name:
            recipe = read_recipe(packaged_recipe(name))
            figure = measured.get(name)
            size = ", ".join(filter(None, (_size(recipe), _time(table, figure))))
            told = "" if figure is None else f"; {_told(figure)}"
            rows.append((task, f"{name}: {purpose}", f"{size}{told}"))
    return rows


def _figures() -> Mapping[str, _Figure]:
    text = _FIGURES.read_text(encoding="utf-8")
    return cast(Mapping[str, _Figure], json.loads(text))


def _told(figure: _Figure) -> str:
    mark = " ▼" if figure["loses"] else ""
    beside = f" ({figure['beside']})" if figure["beside"] else ""
    return f"{figure['figure']}{mark}{beside}"


def _size(recipe: "Recipe") -> str:
    """The architecture, how wide it is and how deep.

    Of a Transformer with four layers on each side, 128 wide, that is transformer 128 × 4 + 4.
    """
    model = recipe.table()["model"]
    width = next((model[name] for name in _WIDTHS if model.get(name)), None)
    depths = [str(model[name]) for name in _DEPTHS if model.get(name)]
    deep = f" × {' + '.join(depths)}" if depths else ""
    return f"{recipe.model_type}{f' {width}' if width else ''}{deep}"


def _time(table: Mapping[str, JsonValue], figure: _Figure | None) -> str:
    if figure is not None and figure["minutes"] is not None:
        return f"{figure['minutes']:g} min"
    training = table.get("training")
    said = training if isinstance(training, Mapping) else {}
    limit = next((name for name in _TIMES if name in said), None)
    if limit is None:
        return ""
    return f"{said[limit]:,} {limit}"
