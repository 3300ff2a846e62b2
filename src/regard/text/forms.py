"""Forms of text files: what the ending of a name says, or else the first lines do."""

import csv
import re
from collections import Counter
from collections.abc import Sequence

# Endings that say what a file holds, and others that say the same.
NAMED = (".tsv", ".csv", ".jsonl", ".conllu")
SAME_AS = {
    **dict.fromkeys((".ndjson", ".jsonlines", ".jl"), ".jsonl"),
    **dict.fromkeys((".bio", ".bio2", ".iob", ".iob2", ".bioes", ".bilou", ".bmes"), ".conll"),
    ".tab": ".tsv",
}
# The form of fastText's lines, which are read as objects of JSON.
FASTTEXT = ".fasttext"
# Before a label in fastText's lines.
LABEL = "__label__"
# Signs that part the cells of a table, where its ending does not say.
_DELIMITERS = (",", ";", "|")
_OBJECT = re.compile(r'\[?\s*\{\s*("|$)')
_LEAST_ROWS = 3
# Rows without a tab that say that a .tsv is none.
_LEAST_CSV = 12
# Share of rows that have as many cells as most.
_MOST_TABBED, _MOST = 0.9, 0.98


def form_of(lines: Sequence[str], ending: str) -> str:
    r"""The ending that a file with these first lines and this ending would better have.

    ``.json`` is SQuAD's layout only; other JSON is read as lines of objects, ``.jsonl``.

    Example:
        >>> form_of(['[{"text": "a"}]'], ".json"), form_of(["__label__x a"], ".txt")
        ('.jsonl', '.fasttext')
        >>> form_of(["I see.\tIch sehe."] * 3, ".txt"), form_of(["I see."] * 3, ".txt")
        ('.tsv', '.txt')
        >>> form_of(["good,I see."] * 12, ".tsv")
        '.csv'
    """
    filled = [line for line in lines if line.strip()]
    if not filled or ending in NAMED:
        return ".csv" if ending == ".tsv" and _is_csv(filled) else ending
    if ending == ".json":
        head = "\n".join(filled)
        is_squad = '"paragraphs"' in head and ('"data"' in head or '"qas"' in head)
        return ".json" if is_squad else ".jsonl"
    if ending != ".conll":
        if _OBJECT.match(" ".join(filled[:2]).strip()):
            return ".jsonl"
        if all(line.startswith(LABEL) for line in filled):
            return FASTTEXT
    rows = [row for row in filled if not row.startswith("#")]
    if any(row.count("\t") == 9 and row.partition("\t")[0] in ("1", "1-2") for row in rows):
        return ".conllu"
    if ending == ".conll" or _are_tagged(lines, rows):
        return ".conll"
    if len(rows) < _LEAST_ROWS:
        return ending
    if _share([row.count("\t") for row in rows]) >= _MOST_TABBED:
        return ".tsv"
    return ".csv" if _are_delimited(rows) else ending


def _is_csv(rows: Sequence[str]) -> bool:
    """Whether rows of a .tsv have no tab, and another sign instead."""
    has_tab = any("\t" in row for row in rows)
    return len(rows) >= _LEAST_CSV and not has_tab and _are_delimited(rows)


def _are_delimited(rows: Sequence[str]) -> bool:
    """Whether nearly all rows have as many commas, semicolons or bars outside of quotes."""
    counts = (_delimiters_of(rows, delimiter) for delimiter in _DELIMITERS)
    return any(_share(each) >= _MOST for each in counts)


def _are_tagged(lines: Sequence[str], rows: Sequence[str]) -> bool:
    """Whether blank lines part blocks of rows that all have as many columns, the first a word."""
    blanks = sum(not line.strip() for line in lines)
    cells = [row.split("\t") if "\t" in row else row.split() for row in rows]
    sizes = {len(row) for row in cells if row[0] != "-DOCSTART-"}
    are_words = sum(" " not in row[0] for row in cells) >= _MOST_TABBED * len(cells)
    return (
        blanks > 0 and len(rows) >= 2 * blanks and len(sizes) == 1 and min(sizes) > 1 and are_words
    )


def _delimiters_of(rows: Sequence[str], delimiter: str) -> list[int]:
    """How many delimiters each row has; none where a row is too long for cells."""
    lines = (row.replace("\r", " ") for row in rows)
    try:
        return [len(cells) - 1 for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return [0]


def _share(counts: Sequence[int]) -> float:
    """The share of rows that have as many delimiters as most, if they have any."""
    ((most, rows),) = Counter(counts).most_common(1)
    return rows / len(counts) if most else 0.0
