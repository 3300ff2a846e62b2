"""Tables of figures on the terminal."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.comparison.report import ComparisonTable

# Wide enough for the widest table where nobody's terminal says otherwise.
_WIDTH = 150


def print_table(table: "ComparisonTable") -> None:
    """Print a table as wide as the terminal, or as it needs where there is none."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    drawn = Drawn(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for place, column in enumerate(table.columns):
        drawn.add_column(column, justify="right" if place else "left", no_wrap=not place)
    for row in table.rows:
        drawn.add_row(*row)
    is_terminal = sys.stdout.isatty()
    Console(
        file=sys.stdout, width=None if is_terminal else _WIDTH, markup=False, highlight=False
    ).print(drawn)
