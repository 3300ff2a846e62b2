"""Tasks of a table by the columns that they read."""

import shlex
from itertools import islice
from pathlib import Path

from regard.config import JsonValue, format_setting
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import read_lines
from regard.text.reading.tables import delimiter_of
from regard.training.recipes import InferredTask
from regard.training.recipes.columns import Column, is_chinese


def column_settings(**columns: Column) -> dict[str, JsonValue]:
    """Settings for the columns that are not called like their field, or are optional."""
    return {
        f"data.{name}": column.called
        for name, column in columns.items()
        if column.called != name or name in ("aspect", "question")
    }


def sentence_pairs(first: Column, second: Column, why: str, *, is_whole: bool) -> InferredTask:
    """Sentence pairs of two columns, ``is_whole`` if the table has no others."""
    columns = [first.called, second.called]
    settings = {} if is_whole and columns == [1, 2] else {"data.columns": columns}
    return InferredTask("sentence pairs", why, None, settings)


def pair_matching(first: Column, second: Column, label: Column, why: str) -> InferredTask:
    """Pairs of texts with labels."""
    settings = column_settings(first=first, second=second, label=label)
    return InferredTask("pairs of texts with labels", why, "pair-matching", settings)


def labelled_texts(text: Column, label: Column, why: str) -> InferredTask:
    """Texts with labels, Chinese ones by a recipe of their own."""
    settings = (
        {} if (text.called, label.called) == (1, 2) else column_settings(text=text, label=label)
    )
    kind = "chinese" if is_chinese(text.cells) else "convolution"
    return InferredTask("texts with labels", why, f"classification-{kind}", settings)


def summarised_documents(document: Column, summary: Column, why: str) -> InferredTask:
    """Documents with summaries, Chinese ones by a recipe of their own."""
    is_usual = (document.called, summary.called) == (1, 2)
    settings = {} if is_usual else column_settings(document=document, answer=summary)
    recipe = "summarisation-chinese" if is_chinese(document.cells) else "summarisation"
    return InferredTask("documents with summaries", why, recipe, settings)


def as_running_text(text: Column, path: Path) -> str:
    """The command that trains on one column as running text, or that writes it into a file."""
    name, copy = shlex.quote(str(path)), shlex.quote(f"{path.stem}-text.txt")
    if not text.number:
        setting = shlex.quote(format_setting("data.column", str(text.called)))
        return f"regard train language-model-characters-fast {name} --set {setting}"
    take = f"cut -f{text.number}"
    if text_suffix(path) == ".csv":
        delimiter = delimiter_of(list(islice(read_lines(path), 50)))
        reader = f'csv.reader(sys.stdin, delimiter="{delimiter}")'
        code = f"import csv, sys; [print(row[{text.number - 1}]) for row in {reader}]"
        take = f"python -c {shlex.quote(code)}"
    lines = f"tail -n +2 {name}" if isinstance(text.called, str) else f"cat {name}"
    return f"{lines} | {take} > {copy} && regard train {copy}"
