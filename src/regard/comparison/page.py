"""Comparisons as one HTML page that needs nothing from outside."""

from html import escape
from importlib.resources import files

import torch

from regard.comparison.drawing import draw
from regard.comparison.report import ComparisonReport, ComparisonTable
from regard.version import __version__


def page(*reports: ComparisonReport) -> str:
    """A page with the text, figures and pictures of reports, light or dark as the reader has it.

    Example:
        >>> text = page(ComparisonReport(title="A < B", text=("One.",), tables=(), pictures=()))
        >>> "<h1>A &lt; B</h1>" in text, "http" in text
        (True, False)
    """
    style = (files("regard.comparison") / "page.css").read_text(encoding="utf-8")
    title = escape(" · ".join(report.title for report in reports))
    sections = [_section(report, level="h1" if len(reports) == 1 else "h2") for report in reports]
    head = "" if len(reports) == 1 else f"<h1>{title}</h1>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{title} – regard</title><style>{style}</style></head>\n"
        f"<body>{head}{''.join(sections)}"
        f"<footer>regard {__version__}, torch {escape(torch.__version__)}. "
        "Point at a mark for its figures.</footer></body></html>\n"
    )


def _section(report: ComparisonReport, *, level: str) -> str:
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in report.text)
    tables = "".join(_table(table) for table in report.tables)
    # In a page the style of the first picture would do; each has its own to stand alone as a file.
    pictures = "".join(f"<figure>{_inline(draw(picture))}</figure>" for picture in report.pictures)
    return (
        f"<section><{level}>{escape(report.title)}</{level}>{text}{tables}"
        f'<div class="pictures">{pictures}</div></section>\n'
    )


def _inline(drawn: str) -> str:
    """A drawing without what only a file of its own needs."""
    return drawn.replace(' xmlns="http://www.w3.org/2000/svg"', "")


def _table(table: ComparisonTable) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="frame"><table><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
