"""Shared drawing of the course's figures: words in two languages, matrices, boxes, arrows."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import MaxNLocator

# Of the fonts for Chinese, a system has one.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

TEAL, ORANGE, BLUE, GREY, RED = "#00796b", "#e65100", "#3949ab", "#607d8b", "#c62828"
PALE = "#eceff1"
FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif"]
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # words stay words: found by a search, read aloud
    "svg.hashsalt": "regard",
    "font.family": FONTS,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "image.cmap": "YlGnBu",
}
Data = Mapping[str, np.ndarray]
Say = Callable[[str, str], str]


@dataclass(frozen=True)
class Picture:
    """A figure: the numbers it shows, and how they are drawn."""

    size: tuple[float, float]  # inches
    data: Callable[[], Data]
    draw: Callable[[Figure, Data, Say], None]
    is_learned: bool = False  # by many random updates: other machines learn other numbers


PICTURES: dict[str, Picture] = {}


def picture(
    name: str,
    width: float,
    height: float,
    data: Callable[[], Data] = dict,
    *,
    is_learned: bool = False,
) -> Callable[[Callable[[Figure, Data, Say], None]], Callable[[Figure, Data, Say], None]]:
    """Register the function that draws a figure, with the one that computes its numbers."""

    def register(draw: Callable[[Figure, Data, Say], None]) -> Callable[[Figure, Data, Say], None]:
        PICTURES[name] = Picture((width, height), data, draw, is_learned)
        return draw

    return register


def write(name: str, folder: Path) -> None:
    """Draw a figure in English and Chinese: ``name.svg`` and ``name.zh.svg``."""
    pic = PICTURES[name]
    data = pic.data()
    for suffix, index in (("", 0), (".zh", 1)):
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=pic.size, layout="constrained")
            pic.draw(figure, data, lambda *words, index=index: words[index])
            figure.savefig(folder / f"{name}{suffix}.svg", metadata={"Date": None})


def fingerprint(data: Data) -> dict[str, list[float]]:
    """Shape, mean, spread and a weighted sum of each array: what a stored figure is held to."""
    prints = {}
    for name, array in data.items():
        flat = np.asarray(array, dtype=np.float64).ravel()
        order = np.cos(np.arange(flat.size))
        numbers = (flat.mean(), flat.std(), (flat * order).mean())
        prints[name] = [*np.shape(array), *(float(f"{number:.5g}") for number in numbers)]
    return prints


def plain(axes: Axes, width: float, height: float) -> Axes:
    """Axes to draw boxes and arrows on, from (0, 0) to (width, height), without a scale."""
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_aspect("equal")
    return axes


def box(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    width: float = 1.0,
    height: float = 0.5,
    color: str = PALE,
    ink: str = "black",
    alpha: float = 1.0,
) -> None:
    """Draw a rounded box around a point, with words in it."""
    corner = (x - width / 2, y - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner,
            width,
            height,
            boxstyle="round,pad=0.02,rounding_size=0.08",
            facecolor=color,
            edgecolor=GREY,
            linewidth=0.8,
            alpha=alpha,
        )
    )
    axes.text(x, y, text, ha="center", va="center", color=ink, fontsize=8)


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    color: str = GREY,
    width: float = 1.0,
    bend: float = 0.0,
    style: str = "-|>",
) -> None:
    """Draw an arrow between two points; ``bend`` curves it."""
    axes.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": style,
            "color": color,
            "linewidth": width,
            "shrinkA": 0,
            "shrinkB": 0,
            "connectionstyle": f"arc3,rad={bend}",
            "mutation_scale": 8,
        },
    )


def matrix(
    figure: Figure,
    axes: Axes,
    weights: np.ndarray,
    *,
    x: str,
    y: str,
    bar: str = "",
    numbers: bool = False,
    columns: Sequence[str] = (),
    rows: Sequence[str] = (),
) -> None:
    """Draw weights as a heat map: a query a row, a key a column."""
    image = axes.imshow(weights, aspect="auto", vmin=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[:].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if columns:
        axes.set_xticks(range(len(columns)), columns)
    if rows:
        axes.set_yticks(range(len(rows)), rows)
    if numbers:
        for place, weight in np.ndenumerate(weights):
            ink = "white" if weight > 0.6 * weights.max() else "black"
            axes.text(place[1], place[0], f"{weight:.2f}", ha="center", va="center", color=ink)
    if bar:
        figure.colorbar(image, ax=axes, label=bar)
