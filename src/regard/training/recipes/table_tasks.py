"""Tasks of a table by the columns that they read."""

from regard.config import JsonValue
from regard.training.recipes import InferredTask
from regard.training.recipes.columns import Column, is_chinese


def column_settings(**columns: Column) -> dict[str, JsonValue]:
    """Settings for the columns that are not called like what they hold, or are optional."""
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
