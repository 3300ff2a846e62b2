"""Requests to a run: what a record of a program, or a line of a file, asks of its task."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from regard.config import JsonValue
from regard.errors import DataError
from regard.tasks import AnyTask
from regard.tasks.labels.label_task import LabelTask
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.text import UNK_ID, Line, Pair, PairTokenizer, Tokenizer
from regard.text.reading.records import record_in
from regard.text.reading.sources import items_of, plain


def records_in(records: object) -> Sequence[object]:
    """One record or several as a sequence: of an array or a data frame its rows."""
    if isinstance(records, str | Path | Mapping | int | float):
        return [records]
    return records if isinstance(records, list | tuple) else items_of(records)


def request_of(task: AnyTask, record: str | Mapping[str, JsonValue], where: str) -> object:
    """The example that a record asks about, or the prompt that a language model is to continue."""
    if isinstance(task, LanguageModelling):
        return task.prompt(record, where)
    return task.request(record, where)


def request_of_value(task: AnyTask, value: object, where: str) -> object:
    """The request of a value as programs have them: see ``record_of``; the path of a picture."""
    if isinstance(value, Path):
        from regard.tasks.labels.image_classification import ImageClassification

        if isinstance(task, ImageClassification):
            return task.request(task.open(value), where)
    record = record_of(value, where)
    if isinstance(record, str) and not isinstance(task, LanguageModelling):
        return task.request(record_in(record), where)
    return request_of(task, record, where)


def request_in(task: AnyTask, line: Line, ending: str) -> object:
    """The example or the prompt in a line of a file; None of a line that holds none."""
    if isinstance(task, LanguageModelling):
        return task.prompt_in(line, ending)
    return task.parse_line(line, ending)


def unknown_in(task: AnyTask, request: object) -> list[str]:
    """The characters or words of a text or prompt that the tokenizer has no ids for."""
    tokenizer: object = getattr(task, "tokenizer", None)
    if isinstance(tokenizer, PairTokenizer):
        tokenizer = tokenizer.source
    if not isinstance(tokenizer, Tokenizer):
        return []
    if isinstance(request, Pair):
        texts: tuple[str, ...] = (request.source,)
    elif isinstance(request, str):
        texts = (request,)
    else:
        texts = task.texts(request) if isinstance(task, LabelTask) and request is not None else ()
    lacking = [text for text in texts if UNK_ID in tokenizer.encode(text)]
    pieces = [piece for text in lacking for piece in tokenizer.pieces(text)]
    return [piece.text for piece in pieces if piece.id == UNK_ID]


def record_of(record: object, where: str) -> str | dict[str, JsonValue]:
    """A record as tasks take it: a line, or an object with names."""
    is_data = isinstance(record, str | Mapping | int | float | list | tuple)
    value = plain(record) if is_data or hasattr(record, "tolist") else None
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return cast("dict[str, JsonValue]", value)
    cells = value if isinstance(value, list) else [value]
    if cells and all(isinstance(cell, list) for cell in cells):
        return {"pixels": cast("list[JsonValue]", cells)}
    if not cells or not all(isinstance(cell, str | int | float) for cell in cells):
        raise DataError(
            f"{where} must be a text, an object of names and values, or a row; got "
            f"{type(record).__name__} {str(record)[:60]!r}."
        )
    return "\t".join(" ".join(str(cell).split()) for cell in cells)
