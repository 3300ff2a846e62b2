"""Infers the task of a table some of whose columns settings name."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from regard.checks import nearest
from regard.errors import DataError
from regard.training.recipes import InferredTask, InferredTasks, Settings
from regard.training.recipes.columns import Column
from regard.training.recipes.table_tasks import column_settings, pair_matching, summarised_documents

# Settings of [data] that name columns: of texts with labels, of pairs, of documents.
_LABELLED = ("text", "aspect", "label")
_PAIRS = ("first", "second", "label")
_DOCUMENTS = ("document", "question", "answer")
_NAMES = (*_LABELLED, *_PAIRS, *_DOCUMENTS, "target")


def columns_named(columns: Sequence[Column], settings: Settings, path: Path) -> dict[str, Column]:
    """The columns that settings name, by the names of fields; DataError of an unknown one."""
    named = {}
    for name in dict.fromkeys(_NAMES):
        value = settings.get(f"data.{name}") or ""
        folded = value.casefold() if isinstance(value, str) else value
        if not value:
            continue
        column = next((c for c in columns if folded in (c.name, c.called, c.number)), None)
        if column is None:
            names = [str(column.called) for column in columns]
            close = nearest(str(value), names)
            cure = f"Did you mean {close!r}?" if close else f"There are {', '.join(names)}."
            raise DataError(
                f"{path}: there is no column {value!r}, which data.{name} names. {cure}"
            )
        named[name] = column
    return named


def of_named(
    named: Mapping[str, Column], texts: Sequence[Column], labels: Sequence[Column], path: Path
) -> InferredTasks:
    """Infer the task that reads the named columns, with unnamed texts and labels beside them."""
    why = "; ".join(map(str, named.values()))
    longest_first = iter(sorted(texts, key=lambda text: -text.size))

    def column(name: str, unnamed: Iterator[Column]) -> Column:
        if (chosen := named.get(name) or next(unnamed, None)) is None:
            raise DataError(
                f"{path}: which column has the {name} must be clear; it is not. Name it: "
                f"--set data.{name}=COLUMN."
            )
        return chosen

    if named.keys() <= {*_LABELLED}:
        settings = column_settings(
            text=column("text", longest_first),
            label=column("label", iter(labels)),
            aspect=named["aspect"],
        )
        task = "texts with labels, for one aspect or another"
        return InferredTasks((InferredTask(task, why, "classification-aspect", settings),))
    if named.keys() <= {*_PAIRS}:
        in_order = iter(texts)
        first, second = (column(name, in_order) for name in ("first", "second"))
        label = column("label", iter(labels))
        return InferredTasks((pair_matching(first, second, label, why),))
    if named.keys() <= {*_DOCUMENTS}:
        document, answer = (column(name, longest_first) for name in ("document", "answer"))
        if "question" not in named:
            return InferredTasks((summarised_documents(document, answer, why),))
        settings = column_settings(document=document, question=named["question"], answer=answer)
        task = "questions about a text, whose answers are written"
        return InferredTasks((InferredTask(task, why, "generation-copy", settings),))
    names = ", ".join(f"data.{name}" for name in named)
    raise DataError(f"{path}: no job reads {names} together. `regard settings` lists them.")
