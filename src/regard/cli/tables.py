"""Tables of figures on the terminal."""

import sys
from collections.abc import Iterable, Sequence

from regard.errors import printable

# Wide enough for the widest table where nobody's terminal says otherwise.
_WIDTH = 150


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as wide as the terminal, or as it needs where there is none."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for place, column in enumerate(columns):
        table.add_column(printable(column), justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*map(printable, row))
    width = None if sys.stdout.isatty() else _WIDTH
    Console(file=sys.stdout, width=width, markup=False, highlight=False).print(table)
