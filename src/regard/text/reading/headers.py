"""Decides by the kinds of its cells whether the first row of a table names the columns."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from math import log
from statistics import fmean, pstdev

from regard.text.normalization import has_unspaced, unspaced_runs

# Patterns of cells that are no words.
NUMBER = re.compile(
    r"(?=.*\d)[-+]?[$€£¥]?[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?([eE][-+]?\d+)?\s?%?"
    r"|[-+]?\d{1,3}(\.\d{3})*,\d+|[-+]?\d+,\d+"
)
DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}\b.*|\d{1,2}([-/.])\d{1,2}\2\d{2,4}\b.*|\d{4}-\d{2}"
    r"|\d{1,2}:\d{2}(:\d{2})?([.,]\d+)?( ?[ap]m)?|(\d+(小时|时|分钟?))*\d+(小时|分钟|秒)"
    r"|\d{4}年(\d{1,2}月(\d{1,2}日)?)?.*"
    r"|((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?((jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*\.? \d{1,2}|\d{1,2}(st|nd|rd|th)?[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*)\b.*\d{2,4}",
    re.IGNORECASE,
)
LINK = re.compile(r"(https?://|www\.|/)\S*|[\w.+-]+@[\w-]+\.\w+|[\w-]+(\.[\w-]+)*\.[a-z]{2,4}")
# A word that has a digit or a sign of codes in it.
CODE = re.compile(r"@\w+|#?(?=\S*\d)[\w.:/+#-]+|[0-9a-fA-F]{8}[0-9a-fA-F-]*|\S+_\S+")
_WORD = re.compile(r"[^\W_]+")
# The form of a cell: each run of capitals, small letters or digits as one sign.
_RUNS = ((re.compile("[A-Z]+"), "A"), (re.compile("[a-z]+"), "a"), (re.compile(r"\d+"), "0"))
# Fractions of the names of columns by kind, end and form; of the others the last.
_KINDS = {"number": 0.03, "date": 0.01, "link": 0.01, "code": 0.1, "words": 0.85}
_ENDS = {"stop": 0.02, "question": 0.12, "colon": 0.05, "none": 0.81}
_FORMS = {"Aa": 0.25, "a": 0.25, "Aa a": 0.15, "Aa Aa": 0.1, "A": 0.05}
_OTHER_FORM, _AGAIN, _CLAUSES, _UNSPACED = 0.02, 0.02, 0.08, (0.1, 0.7)
# The logarithm of a name's width: its mean and deviation; and the least deviation of other cells.
_NAME_SIZE, _NAME_SPREAD, _LEAST_SPREAD = 2.5, 0.9, 0.25
# Rows that are looked at, and those that are like the first in a file that is sorted.
FIRST_ROWS, _NEAR = 200, 20
# The fraction of rows that may repeat a header.
_REPEATED = 0.1
# So few rows show no kinds: names of which most are usual make a header.
_FEW = 4
# Scores: at most of one trait, of usual names, of equal ones, and enough for a header.
_MOST, _MOST_OF_WIDTH, _USUAL, _EQUAL, _ENOUGH, _ENOUGH_FURTHER = 4.5, 3.0, 4.0, 2.0, 2.0, 6.0
# Texts of empty cells.
_MISSING = frozenset(("nan", "null", "none", "n/a", "na", "#n/a", "-", "--"))


def count_header_rows(rows: Sequence[Sequence[str]], names: Collection[str] = ()) -> int:
    """Count the rows at the beginning that name the columns; ``names`` are usual ones.

    Each trait of a cell (kind, width, script, end, whether it comes again) is more frequent in
    names or in the cells below; the logarithms of the ratios are added up, as by naive Bayes.
    Surveys may write a second and a third such row, above numbers and dates that have words or
    nothing there.
    """
    return int(_is_header(rows, frozenset(names))) and 1 + count_further(rows[1:])


def count_titles(rows: Sequence[Sequence[str]], names: Collection[str] = ()) -> int:
    """Count the rows above a header that have one cell, such as the title of a sheet."""
    filled = [sum(map(bool, row)) for row in rows[:FIRST_ROWS]]
    count = next((n for n, cells in enumerate(filled) if cells > 1), 0)
    return count if count and count_header_rows(rows[count:], names) else 0


def without_row_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a header lacks a name above the numbers of rows, as R writes tables."""
    first, *below = rows
    numbers = [row[0] for row in below if len(row) == len(first) + 1]
    return bool(below) and numbers == [str(n) for n in range(1, len(below) + 1)]


def count_further(rows: Sequence[Sequence[str]]) -> int:
    """Count the rows below a header's first that name the columns too: at most two."""
    is_further = [_is_header(rows[number:], frozenset(), is_further=True) for number in range(2)]
    return (*is_further, False).index(False)


def _is_header(
    rows: Sequence[Sequence[str]], usual: frozenset[str], *, is_further: bool = False
) -> bool:
    rows = [row for row in rows[:FIRST_ROWS] if len(row) == len(rows[0])]
    below = [row for row in rows[1:] if row != rows[0]]
    if len(rows) - len(below) <= 1 + _REPEATED * len(rows):  # files put together with their headers
        rows = [*rows[:1], *below]
    if len(rows) < 2:
        return False
    columns = [[_filled(cell) for cell in column] for column in zip(*rows, strict=True)]
    heads = [column[0].casefold() for column in columns if column[0]]
    if heads in ([str(n + first) for n in range(len(heads))] for first in (0, 1)):
        # Pandas writes numbers where columns have no names.
        return any(_kinds(column[1:])["number"] < len(rows) / 2 for column in columns if column[0])
    if len(rows) <= _FEW:
        usual_names = sum(_is_usual(head, usual) for head in heads)
        return len(set(heads)) == len(heads) and usual_names > len(columns) / 2
    if is_further and not any(_lacks_number(*column) for column in columns):
        return False
    total = sum(_evidence(column[0], column[1:], usual) for column in columns)
    total -= _EQUAL * (len(set(heads)) < len(heads))
    return total >= (_ENOUGH_FURTHER if is_further else _ENOUGH)


def _filled(cell: str) -> str:
    """A cell without spaces around; empty where it says that nothing is there."""
    cell = cell.strip()
    return "" if cell.casefold() in _MISSING else cell


def _lacks_number(head: str, *cells: str) -> bool:
    """Whether a cell is empty or of words above nothing but numbers or dates."""
    kinds = _kinds(cells)
    are_numbers = max(kinds["number"], kinds["date"]) > 0.9 * len(cells)
    return are_numbers and (not head or _kind(head) == "words")


def _evidence(head: str, cells: Sequence[str], usual: frozenset[str]) -> float:
    """The logarithm of how much likelier the first cell of a column is to be its name."""
    filled = [cell for cell in cells if cell]
    if not head or not filled:
        return 2 * _USUAL * ([str(n) for n in range(len(cells))] == list(cells))
    counts = Counter(map(str.casefold, filled))
    repeated = sum(count for count in counts.values() if count > 1)
    is_repeated = head.casefold() in counts
    evidence = _trait(_AGAIN, is_repeated, repeated, len(filled))
    if not is_repeated and _is_usual(head, usual):
        evidence += _USUAL
    kinds = _kinds(filled)
    evidence += 2 * _ratio(_KINDS[_kind(head)], kinds[_kind(head)], len(filled))
    if kinds["number"] + kinds["date"] > len(filled) / 2:
        return evidence
    unspaced = sum(map(has_unspaced, filled))
    few, many = _UNSPACED
    of_names = few + (many - few) * unspaced / len(filled)
    evidence += _trait(of_names, has_unspaced(head), unspaced, len(filled))
    clauses = sum(map(_has_clauses, filled))
    evidence += _trait(_CLAUSES, _has_clauses(head), clauses, len(filled))
    evidence += _ratio(_ENDS[_end(head)], Counter(map(_end, filled))[_end(head)], len(filled))
    if repeated > len(filled) / 2 and not is_repeated:
        form, forms = _form(head), Counter(map(_form, filled))
        evidence += _ratio(_FORMS.get(form, _OTHER_FORM), forms[form], len(filled)) / 2
    return evidence + min(_of_width(head, filled), _of_width(head, filled[:_NEAR]))


def _is_usual(head: str, usual: frozenset[str]) -> bool:
    """Whether a cell is made of the words of usual names."""
    words = _WORD.findall(head.casefold())
    return bool(words) and usual.issuperset(words)


def _ratio(of_names: float, count: int, total: int) -> float:
    """The logarithm of a fraction of names over one of cells that were counted."""
    return max(-_MOST, min(_MOST, log(of_names * (total + 1) / (count + 0.5))))


def _trait(of_names: float, has: bool, count: int, total: int) -> float:
    """Log-odds of a trait that a cell has or lacks, as this fraction of names has it."""
    if has:
        return _ratio(of_names, count, total)
    return _ratio(1 - of_names, total - count, total)


def _has_clauses(cell: str) -> bool:
    return any(sign in cell for sign in ",;，；")


def _kinds(cells: Sequence[str]) -> Counter[str]:
    return Counter(map(_kind, cells))


def _kind(cell: str) -> str:
    for name, pattern in (("number", NUMBER), ("date", DATE), ("link", LINK), ("code", CODE)):
        if pattern.fullmatch(cell):
            return name
    return "words"


def _end(cell: str) -> str:
    for name, signs in (("stop", ".!。！…"), ("question", "?？"), ("colon", ":：")):
        if cell.rstrip(" *\"”'’」』)）").endswith(tuple(signs)):
            return name
    return "none"


def _form(cell: str) -> str:
    for pattern, sign in _RUNS:
        cell = pattern.sub(sign, cell)
    return cell


def _of_width(head: str, cells: Sequence[str]) -> float:
    """The logarithm of the density of a cell's width among names, over that among other cells."""
    sizes = [log(_width(cell)) for cell in cells]
    spread = max(_LEAST_SPREAD, pstdev(sizes)) + len(sizes) ** -0.5
    size = log(_width(head))
    ratio = _log_density((size - _NAME_SIZE) / _NAME_SPREAD, _NAME_SPREAD)
    ratio -= _log_density((size - fmean(sizes)) / spread, spread)
    return max(-_MOST_OF_WIDTH, min(_MOST_OF_WIDTH, ratio))


def _log_density(deviation: float, spread: float) -> float:
    return -(deviation**2) / 2 - log(spread)


def _width(cell: str) -> int:
    """The columns of a terminal that a cell takes, about."""
    return len(cell) + sum(end - start for start, end in unspaced_runs(cell))
