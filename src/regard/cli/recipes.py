"""The recipes that come with regard: ``regard recipes``."""

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, TypedDict, cast

from cyclopts import App, Parameter

from regard.choices import choose
from regard.cli.output import say
from regard.config import JsonValue, read_toml
from regard.training.packaged import packaged_recipe, packaged_recipes

if TYPE_CHECKING:
    from rich.table import Table

    from regard.tasks import Recipe

__all__ = ["listed_recipes", "packaged_recipe", "packaged_recipes", "recipes"]

_FIGURES = files("regard") / "recipes" / "figures.json"
# Wide enough where nobody's terminal says otherwise.
_WIDTH = 160
# Settings of models that say how wide one is, the first that it has; and how deep.
_WIDTHS = ("model_dim", "hidden_dim", "channels", "embed_dim")
_DEPTHS = ("num_encoder_layers", "num_decoder_layers", "num_layers", "num_hops")
_TIMES = ("minutes", "updates", "epochs")

recipes = App(
    name="recipes",
    help="List the recipes that come with regard, or print one.",
    help_format="markdown",
    default_parameter=Parameter(negative=()),
)


class _Figure(TypedDict):
    """What was measured of a recipe: as ``python -m benchmarks.tables`` writes it."""

    figure: str
    beside: str
    loses: bool
    minutes: float | None


@recipes.default
def listed(job: str | None = None, /) -> None:
    """List the recipes: the job, the size of the model, how long it trains, and what came of it.

    Example: `regard recipes tagging`

    The figures are those of docs/measured.md; ▼ marks one that is no better than what needs no
    model, which stands beside it. Minutes are of two CPU cores; where none were measured, the
    updates or epochs stand there that the recipe makes.

    Args:
        job: Only recipes of this task, or whose name has this in it; by default all.
    """
    from rich.console import Console

    found = _rows(job)
    if not found:
        choose("the job", job, dict.fromkeys(sorted({row[1] for row in _rows(None)})))
    is_seen = sys.stdout.isatty()
    width = None if is_seen else _WIDTH
    Console(file=sys.stdout, width=width, markup=False, highlight=False).print(_table(found))


@recipes.command
def show(name: str, /) -> None:
    """Print a recipe with its comments, ready to be kept and changed.

    Example: `regard recipes show tagging-words > mine.toml`, then `regard train mine.toml`

    Args:
        name: The recipe.
    """
    choose("recipe", name, packaged_recipes())
    say(packaged_recipe(name).read_text(encoding="utf-8").rstrip())


def _rows(job: str | None) -> list[tuple[str, str, str, str, str]]:
    from regard.tasks import read_recipe

    measured = _figures()
    rows = []
    for name in packaged_recipes():
        table = read_toml(packaged_recipe(name))
        task = str(table["task"])
        if job is None or job == task or job in name:
            recipe = read_recipe(packaged_recipe(name))
            figure = measured.get(name)
            told = "" if figure is None else _told(figure)
            rows.append((name, task, _size(recipe), _time(table, figure), told))
    return rows


def _table(rows: list[tuple[str, str, str, str, str]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("recipe", "job", "size", "minutes", "figure"):
        table.add_column(
            column,
            justify="right" if column == "minutes" else "left",
            no_wrap=column == "recipe",
        )
    for row in sorted(rows, key=lambda row: (row[1], row[0])):
        table.add_row(*row)
    return table


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
        return f"{figure['minutes']:g}"
    training = table.get("training")
    said = training if isinstance(training, Mapping) else {}
    limit = next((name for name in _TIMES if name in said), None)
    if limit is None:
        return ""
    return f"{said[limit]:g}" if limit == "minutes" else f"{said[limit]:,} {limit}"


def listed_recipes() -> str:
    """The recipes as a list in help."""
    return "\n".join(f"- `{name}`: {purpose}" for name, purpose in packaged_recipes().items())
