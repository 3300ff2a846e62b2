"""Infers a task from the contents of a file."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from regard.config import JsonValue
from regard.errors import DataError
from regard.metrics.labels import entity_tags
from regard.text import read_lines
from regard.text.reading.annotations import TEXTS, are_spans
from regard.text.reading.folders import has_picture_classes
from regard.text.reading.foreign import check_no_column_signs, check_no_markup
from regard.text.reading.forms import BRAT, open_text, text_suffix
from regard.text.reading.lines import Line, decode_lines, readable
from regard.text.reading.opening import PACKED
from regard.text.reading.opening import TABLES as ARROW_TABLES
from regard.text.reading.pictures import read_pixels
from regard.text.reading.questions import answer_list
from regard.text.reading.records import HARMLESS, example_of, value_at
from regard.text.reading.sources import shards
from regard.text.reading.tables import TABLES, Field, csv_rows, usual_names
from regard.text.reading.tagged import (
    DOCUMENT_MARK,
    KEYS,
    sentence_column,
    sentences_of,
    text_columns,
    word_table,
)
from regard.training.recipes import InferredTask, InferredTasks, Settings
from regard.training.recipes.columns import LEAST_ROWS, MOST, Column, is_chinese, is_label
from regard.training.recipes.inferring_tables import of_columns, of_table

# Lines that are looked at, and bytes of a file that is one JSON object.
_LINES, _BYTES = 2000, 1 << 20
# Bytes of a text from which subwords are learned rather than characters.
_LARGE = 4 << 20
# Bytes of a file of which more than the beginning is looked at, and how many parts.
_LARGE_FILE, _PARTS = 1 << 20, 8
_READING = "questions whose answers stand in a text"
_SENTENCES = "questions that a sentence of a text answers"
# Settings of keys that need none, as documents are read.
_USUAL = (("data.document", "context"), ("data.answer", "answers"), ("data.answer", "summary"))
# Pictures that are looked at, the size that larger ones are scaled to, and the side of a patch.
_PICTURES, _SIZE, _PATCH = 32, 32, 4
# A text in SQuAD's JSON.
_CONTEXT = re.compile(r'"context(?:_text)?"\s*:\s*("(?:[^"\\]|\\.)*")')
# A word, a sign and its tag.
_TAGGED = re.compile(r"\S+([/_])[A-Za-z.$,:;!?][\w.$*+-]*")


def infer_tasks(path: Path, settings: Settings = MappingProxyType({})) -> InferredTasks:
    """Infer the tasks that a file, a folder or a pattern may be for, the likeliest first.

    Columns that settings name, such as ``data.text``, are taken for those fields.
    """
    if has_picture_classes(path):
        return _of_pictures(path)
    if has_picture_classes(path / "train"):
        raise DataError(
            f"{path} must be one part of the pictures; got the parts as folders. Say: "
            f"regard train {shlex.quote(str(path / 'train'))}, and --test for that to test on."
        )
    path = shards(path)[0]
    _check_without_annotations(path)
    ending = text_suffix(path)
    if ending == ".conllu":
        return InferredTasks((_tagging(["UPOS"], "CoNLL-U has a tag for each word", []),))
    if ending == ".json":
        return _of_json(path)
    lines = list(islice(read_lines(path), _LINES))
    filled = [line for line in lines if line.text.strip()]
    if not filled:
        raise DataError(f"{path} must hold something to learn from; got an empty file.")
    readable(lines[0])
    if len(filled) == 1 and _is_header(filled[0], ending):
        raise DataError(f"{path} must hold rows below its header; got {filled[0].text!r} alone.")
    later = _later_lines(path, lines[0])
    if ending == ".jsonl":
        return _of_records(path, [line for part in (lines, *later) for line in part], settings)
    if not _names_texts(settings) and (tagged := _of_words(path, lines, ending, settings)):
        return InferredTasks((tagged,))
    if ending == ".conll":
        raise DataError(
            f"{path} must have a word and its tag a line, a tab or spaces between, and blank lines "
            f"between sentences, as its ending says; got {filled[0].text[:60]!r}."
        )
    tasks = of_table(path, lines, ending, later, settings) if ending in TABLES else None
    return _of_text(path, lines) if tasks is None else tasks


def _check_without_annotations(path: Path) -> None:
    """Raise DataError for a text with brat's annotations beside it."""
    annotations = path.with_suffix(BRAT)
    if path.suffix == ".txt" and annotations.is_file():
        raise DataError(
            f"{path} must be named by its annotations, which stand beside it in {annotations.name}."
            f" Say: regard train {shlex.quote(str(annotations))}"
        )


def _is_header(line: Line, ending: str) -> bool:
    """Whether a row of a table holds nothing but names of columns that are known."""
    row = next(csv_rows([line]), line) if ending == ".csv" else line
    names = {cell.strip().casefold() for cell in row.text.split("\t")}
    return ending in TABLES and names <= usual_names() | {"id"}


def _later_lines(path: Path, first: Line) -> list[list[Line]]:
    """Lines from all over a large file, since many are sorted; none in an unknown encoding."""
    size = path.stat().st_size
    if size < _LARGE_FILE or path.suffix in (*PACKED, *ARROW_TABLES):
        return []
    parts = []
    with path.open("rb") as file:
        if next(decode_lines([file.readline()], str(path))).text != first.text:
            return []
        for part in range(1, _PARTS + 1):
            file.seek(size * part // (_PARTS + 1))
            file.readline()
            parts.append(list(decode_lines(islice(file, _LINES // _PARTS), str(path))))
    return [[line for line in lines if line.problem is None] for lines in parts]


def _of_pictures(path: Path) -> InferredTasks:
    """Pictures with labels, small ones as they are and others scaled to a size of patches."""
    files = sorted(path.glob("*/[!._]*"))
    sizes = {read_pixels(file).shape[:2] for file in files[:: len(files) // _PICTURES + 1]}
    (height, width), *more_sizes = sizes
    is_small = not more_sizes and height == width <= _SIZE and height % _PATCH == 0
    settings = {"model.patch": _PATCH, **({} if is_small else {"data.size": _SIZE})}
    labels = sorted(folder.name for folder in path.iterdir() if folder.is_dir())
    reason = f"it is a folder of folders of pictures ({', '.join(labels[:4])}, …)"
    task = InferredTask("pictures with labels", reason, "vision-transformer", settings)
    return InferredTasks((task,))


def _of_json(path: Path) -> InferredTasks:
    with open_text(path) as file:
        start = b"".join(islice(file, 200))[:_BYTES].decode("utf-8", "replace").lstrip()
    chinese = "-chinese" if is_chinese(_contexts(start)) else ""
    why = "it is SQuAD's JSON: texts, questions and where their answers stand"
    reading = InferredTask(_READING, why, f"question-answering{chinese}")
    return InferredTasks((reading, InferredTask(_SENTENCES, why, "sentence-selection")))


def _names_texts(settings: Settings) -> bool:
    """Whether settings name columns of texts, so that words with tags are not in question."""
    return bool(settings.keys() & {"data.text", "data.first", "data.document"})


def _of_records(path: Path, lines: Sequence[Line], settings: Settings) -> InferredTasks:
    """Infer the task of JSON objects from their keys."""
    records = _usable_records(path, lines)
    if not records:
        raise DataError(f"{path} must hold a JSON object a line; got {lines[0].text[:60]!r}.")
    keys = [key for key, count in Counter(k for r in records for k in r).items() if count > 1]
    keys = keys or list(records[0])
    why = f"its objects have {', '.join(map(repr, keys[:8]))}"

    def has(*names: str) -> str | None:
        return next((key for key in keys if key.casefold() in names), None)

    objects = {k: value for k in keys if isinstance(value := records[0].get(k), Mapping)}
    inner = [f"{key}.{name}" for key, value in objects.items() for name in value]
    columns = _columns(records, [*keys, *inner])
    if _names_texts(settings):
        return of_columns(columns, path, settings)
    with_spans = Counter(key for record in records for key in keys if are_spans(record.get(key)))
    if with_spans:
        return _of_spans(path, records, keys, with_spans.most_common(1)[0][0])
    words, key = (_key_of(name, keys, settings) for name in KEYS)
    if words and key:
        tags = [str(tag) for record in records for tag in _list(record.get(key))]
        return InferredTasks((_tagging(tags, why, _texts(records, words)),))
    if has("question") and has("context"):
        return _of_questions(records, why)
    if has("source") and has("target", "references"):
        return InferredTasks((InferredTask("sentence pairs", why),))
    if len(columns) > 1 and any(column.kind in ("text", "number") for column in columns):
        tasks = of_columns(columns, path, settings)
        unusual = []
        for task in tasks.candidates:
            named = dict(setting for setting in task.settings.items() if setting not in _USUAL)
            unusual.append(replace(task, settings=named))
        return replace(tasks, candidates=tuple(unusual))
    raise DataError(
        f"{path}: its objects must say what to learn; got {', '.join(map(repr, keys[:12]))}. "
        "There are text and label, tokens and tags, source and target, document and summary, "
        "question, context and answers; or name the keys: regard train "
        f"{shlex.quote(str(path))} --set data.text=KEY --set data.label=KEY."
    )


def _key_of(name: str, keys: Sequence[str], settings: Settings) -> str | None:
    """The key of the words or of the tags, as a training reads them."""
    return next((key for key in (settings.get(f"data.{name}"), *KEYS[name]) if key in keys), None)  # type: ignore[return-value]


def _usable_records(path: Path, lines: Sequence[Line]) -> list[Mapping[str, JsonValue]]:
    """The objects of lines; DataError where annotators have rejected or skipped all."""
    records: list[Mapping[str, JsonValue]] = []
    left_out = None
    for line in lines:
        try:
            records.append(example_of(line))
        except DataError as error:
            left_out = error if error.reason in HARMLESS else left_out
    if left_out is not None and not records:
        raise DataError(f"{path} must hold something to learn from; got only {left_out.reason}.")
    return records


def _columns(records: Sequence[Mapping[str, JsonValue]], keys: Sequence[str]) -> list[Column]:
    """The values at those keys that have texts and numbers alone."""
    values = {key: [_cell(value_at(record, key)) for record in records] for key in keys}
    return [
        Column(key, ["" if value is None else str(value).strip() for value in column])
        for key, column in values.items()
        if all(isinstance(value, str | int | float | None) for value in column)
    ]


def _cell(value: JsonValue) -> JsonValue:
    """The value, or the texts of a list as one, which may be a label."""
    if isinstance(value, bool):
        return json.dumps(value)
    is_list = isinstance(value, list) and all(isinstance(item, str | int) for item in value)
    return ", ".join(map(str, value)) if is_list else value  # type: ignore[arg-type]


def _of_spans(
    path: Path, records: Sequence[Mapping[str, JsonValue]], keys: Sequence[str], spans: str
) -> InferredTasks:
    """Texts with spans of their characters, which become tags of their words."""
    columns = _columns(records, keys)
    texts = [column for column in columns if column.kind == "text"] or columns
    text = max(texts, key=lambda column: (column.name in TEXTS, column.size), default=None)
    if text is None:
        raise DataError(f"{path} must hold a text beside its spans at {spans!r}; got none.")
    key = str(text.called)
    settings = {"data.tag": spans, **({} if key in TEXTS else {"data.word": key})}
    kind = "chinese-entities" if is_chinese(text.cells) else "entities"
    reason = f"its objects have {key!r}, and spans of its characters at {spans!r}"
    tagging = InferredTask("words with tags, by spans", reason, f"tagging-{kind}", settings)
    labels = [column for column in columns if column.kind == "label" and column.is_named_label]
    if not labels:
        return InferredTasks((tagging,))
    every = of_columns([text, *labels], path)
    return InferredTasks((tagging, *every.candidates), is_sure=False)


def _contexts(start: str) -> list[str]:
    """The texts of SQuAD's JSON, as far as its start has them whole."""
    contexts = []
    for quoted in _CONTEXT.findall(start):
        with suppress(ValueError):  # a damaged one is told of when it is read
            contexts.append(json.loads(quoted, strict=False))
    return contexts


def _of_questions(records: Sequence[Mapping[str, JsonValue]], why: str) -> InferredTasks:
    if any(isinstance(record.get("choices"), list) for record in records):
        choosing = "questions with answers to choose from"
        return InferredTasks((InferredTask(choosing, why, "multiple-choice"),))
    answers = [(str(record.get("context")), _answers(record)) for record in records]
    stands = [any(one in context for one in spans) for context, spans in answers if spans]
    chinese = "-chinese" if is_chinese(_texts(records, "context")) else ""
    fraction = sum(stands) / max(1, len(stands))
    reading = InferredTask(
        _READING,
        f"{why}, and {'most' if fraction >= MOST else 'some'} answers stand in the text",
        f"question-answering{chinese}",
    )
    writing = InferredTask(
        "questions whose answers are written",
        f"{why}, and {'some' if fraction >= 0.5 else 'most'} answers do not stand in the text",
        "generation-copy",
    )
    tasks = (reading, writing) if fraction >= MOST else (writing, reading)
    return InferredTasks(tasks, is_sure=fraction >= MOST or fraction < 1 - MOST / 2)


def _answers(record: Mapping[str, JsonValue]) -> list[str]:
    value = record.get("answers", record.get("answer"))
    answers = [value] if isinstance(value, str) else _list(answer_list(value))
    return [str(entry.get("text") if isinstance(entry, Mapping) else entry) for entry in answers]


def _of_words(
    path: Path, lines: Sequence[Line], ending: str, settings: Settings
) -> InferredTask | None:
    """Tagged words: where a header says so, or blank lines part blocks of short rows."""
    fields = [_field(settings, *usual) for usual in (("word", 1), ("tag", 2))]
    table = word_table(lines, ending, fields)
    rows = list(table.lines)
    blank = sum(not line.text.strip() for line in rows)
    blocks = [
        [line.text.split("\t") for line in block]
        for block in sentences_of(replace(table, lines=iter(rows)))
    ]
    filled = [row for block in blocks for row in block]
    header, column = table.header, sentence_column(table)
    last = min(map(len, filled), default=0)
    word, tag = (table.columns[name] - 1 for name in ("word", "tag"))
    if last < 2 or len(filled) < 2 * blank:
        return None
    if table.header is None:
        texts = text_columns(blocks)
        word = word if fields[0].is_fixed else next(iter(texts), 0)
        labels = (n for n in reversed(texts) if n > word and is_label([row[n] for row in filled]))
        tag = tag if fields[1].is_fixed else next(labels, last)
    if tag >= last:
        return None
    words, tags = [row[word] for row in filled], [row[tag].strip() for row in filled]
    is_short = sum(" " not in cell for cell in words) >= MOST * len(words)
    if not is_short or not is_label(tags):
        return None
    if blank or column is not None:
        how = f"{header[column]!r} parts" if header and column is not None else "blank lines part"
        numbers = (("word", word, 0), ("tag", tag, 1))
        columns: Settings = {
            f"data.{name}": n + 1 for name, n, usual in numbers if n != usual and not header
        }
        has_marks = any(line.text.startswith(DOCUMENT_MARK) for line in lines)
        ignored = f"; lines of {DOCUMENT_MARK} are left out" * has_marks
        why = f"{how} its blocks of words with a tag each{ignored}"
        return _tagging(tags, why, words, columns)
    if header is None or header[tag].casefold() == "label":
        return None
    raise DataError(
        f"{path} must part its sentences; got {' and '.join(map(repr, header))}, and neither "
        "a blank line nor a column 'sentence' whose cells say which sentence a word is of."
    )


def _field(settings: Settings, name: str, usual: int) -> Field:
    """A column of words or tags, fixed if a setting names it."""
    value = settings.get(f"data.{name}")
    is_named = isinstance(value, str | int) and bool(value)
    return Field(name, value if is_named else usual, is_fixed=is_named)  # type: ignore[arg-type]


def _of_text(path: Path, lines: Sequence[Line]) -> InferredTasks:
    texts = [line.text for line in lines if line.text.strip()]
    check_no_markup(path, texts[0])
    check_no_column_signs(path, texts)
    words = [word for text in texts[:200] for word in text.split(" ") if word]
    signs = Counter(match[1] for word in words if (match := _TAGGED.fullmatch(word)))
    sign, count = next(iter(signs.most_common(1)), ("", 0))
    if count >= MOST * len(words):
        raise DataError(
            f"{path} must have a word and its tag a line, a tab between, and a blank line between "
            "sentences; got both in one word. Convert it: "
            rf"sed -E 's/$/ /; s#{sign}([^{sign} ]+) +#\t\1\n#g' "
            f"{shlex.quote(str(path))} > {path.stem}.conll"
        )
    chinese = is_chinese(texts)
    large = path.stat().st_size > _LARGE and not chinese
    model = "language-model-subwords" if large else "language-model-characters-fast"
    why = "its lines have no columns"
    going_on = InferredTask("running text, to go on with", why, model)
    kind = "chinese" if chinese else "words"
    blanks = InferredTask("running text, to fill blanks in", why, f"masked-language-model-{kind}")
    return InferredTasks((going_on, blanks), is_sure=len(texts) >= LEAST_ROWS)


def _tagging(
    tags: Sequence[str], reason: str, words: Sequence[str], settings: Settings | None = None
) -> InferredTask:
    recipe = "tagging-words"
    if entity_tags(set(tags)) is not None:
        recipe = "tagging-chinese-entities" if is_chinese(words) else "tagging-entities"
    examples = ", ".join(list(dict.fromkeys(tags))[:4])
    return InferredTask("words with tags", f"{reason} ({examples}, …)", recipe, settings or {})


def _texts(records: Sequence[Mapping[str, JsonValue]], key: str | None) -> list[str]:
    cells = [record.get(key or "", "") for record in records]
    return [" ".join(map(str, cell)) if isinstance(cell, list) else str(cell) for cell in cells]


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else []
