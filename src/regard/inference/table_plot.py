"""Tables of what was taken for what, as pictures."""

from collections.abc import Sequence
from pathlib import Path

from regard.errors import RunError, SettingError
from regard.tasks.job import Table

# Labels beyond these would be too small to read.
_MOST_FIGURES = 12


def plot_table(tables: Sequence[Table], path: Path) -> None:
    """Draw the matrix among ``tables``: rows are right labels, the shade their share of the row.

    Args:
        tables: Those of a report.
        path: An image file: .svg, .png or .pdf.

    Raises:
        SettingError: matplotlib is not installed, or there is no matrix.
        RunError: The file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            "matplotlib must be installed to draw; it is not. pip install 'regard[plots]'"
        ) from None
    matrices = [table for table in tables if table.is_matrix]
    if not matrices:
        raise SettingError("tables must hold a matrix to be drawn; there is none for this task.")
    table = matrices[0]
    counts = [[float(cell) for cell in row[1:]] for row in table.rows]
    shares = [[cell / max(1.0, sum(row)) for cell in row] for row in counts]
    size = 2.5 + 0.5 * len(counts)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="cividis")
    names = [str(row[0]) for row in table.rows]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("taken for")
    axes.set_ylabel("right")
    if len(names) <= _MOST_FIGURES:
        for y, row in enumerate(counts):
            for x, count in enumerate(row):
                shade = "black" if shares[y][x] > 0.5 else "white"
                axes.text(x, y, f"{count:,.0f}", ha="center", va="center", color=shade)
    figure.colorbar(image, label="share of the row")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} must be an image file that can be written; got: {error}."
        ) from error
