"""What an evaluation found, and how training came there, as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from regard.config import JsonValue
from regard.errors import RunError, SettingError
from regard.inference.ensemble import Member
from regard.inference.loss_plot import draw_loss
from regard.inference.predictor import Predictor
from regard.inference.task_evaluation import TaskReport
from regard.tasks.task import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from regard.text.points import Point

# Labels beyond these would be too small to read.
_MOST_FIGURES = 12


def plot_report(
    predictor: Member,
    report: TaskReport,
    examples: Sequence[object],
    history: Sequence[Mapping[str, JsonValue]],
    path: Path,
) -> None:
    """Draw what was taken for what beside the loss; of a regression, its fits and weights.

    Args:
        predictor: The model in use.
        report: What was found.
        examples: What it was found on.
        history: What training recorded, as ``Run.metrics`` gives it.
        path: An image file: .svg, .png or .pdf.

    Raises:
        SettingError: matplotlib is not installed.
        RunError: The file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            "matplotlib must be installed to draw; it is not. pip install 'regard[plots]'"
        ) from None
    from regard.inference.regression_plot import draw_regression
    from regard.tasks.regression import Regression

    figure = Figure(layout="constrained")
    if isinstance(predictor, Predictor) and isinstance(predictor.task, Regression):
        points = cast("Sequence[Point]", examples)
        draw_regression(figure, predictor.model, predictor.task, points, history)
    else:
        _draw(figure, [table for table in report.tables if table.is_matrix][:1], history)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} must be an image file that can be written; got: {error}."
        ) from error


def _draw(
    figure: "Figure", tables: Sequence[Table], history: Sequence[Mapping[str, JsonValue]]
) -> None:
    size = 2.5 + 0.5 * max([4, *(len(table.rows) for table in tables)])
    figure.set_size_inches((size + 1) * len(tables) + 5, size)
    every = figure.subplots(1, len(tables) + 1, squeeze=False)[0]
    for axes, table in zip(every, tables, strict=False):
        _draw_matrix(figure, axes, table)
    draw_loss(every[-1], history)


def _draw_matrix(figure: "Figure", axes: "Axes", table: Table) -> None:
    """Rows are right labels, the shade their share of the row."""
    counts = [[float(cell) for cell in row[1:]] for row in table.rows]
    shares = [[cell / max(1.0, sum(row)) for cell in row] for row in counts]
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="cividis")
    names = [str(row[0]) for row in table.rows]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("taken for")
    axes.set_ylabel("right")
    axes.set_title("What was taken for what")
    if len(names) <= _MOST_FIGURES:
        for y, row in enumerate(counts):
            for x, count in enumerate(row):
                shade = "black" if shares[y][x] > 0.5 else "white"
                axes.text(x, y, f"{count:,.0f}", ha="center", va="center", color=shade)
    figure.colorbar(image, label="share of the row")
