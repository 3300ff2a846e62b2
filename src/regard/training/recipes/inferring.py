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

from regard.config import JsonValue
from regard.errors import DataError
from regard.text import read_lines
from regard.text.reading.forms import has_picture_classes, open_text, text_suffix
from regard.text.reading.lines import Line, decode_lines, readable
from regard.text.reading.opening import PACKED
from regard.text.reading.opening import TABLES as ARROW_TABLES
from regard.text.reading.pictures import read_pixels
from regard.text.reading.questions import answer_list
from regard.text.reading.records import record_in, value_at
from regard.text.reading.sources import shards
from regard.text.reading.tables import TABLES, Field, csv_rows, known_names
from regard.text.reading.tagged import DOCUMENT_MARK, sentence_column, word_table
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
_USUAL = (
    ("data.document", "context"),
    ("data.answer", "answers"),
    ("data.answer", "summary"),
)
# Pictures that are looked at, the size that larger ones are scaled to, and the side of a patch.
_PICTURES, _SIZE, _PATCH = 32, 32, 4
# A text in SQuAD's JSON.
_CONTEXT = re.compile(r'"context"\s*:\s*("(?:[^"\\]|\\.)*")')
# A word, a slash and its tag.
_TAGGED = re.compile(r"\S+/[A-Za-z.$,:;!?][\w.$*+-]*")
# The beginning of a file of markup.
_MARKUP = re.compile(r"<(\?xml|!doctype|html|tmx|TEI)\b", re.IGNORECASE)
# A tag of an entity, or of a cut text, in BIO, BIOES, BILOU, BMES or BMEWO.
_BIO = re.compile(r"[BIOESLUMW](-.+)?")
# When a subtitle is seen.
_TIMES = re.compile(r"(\d+:)?\d\d:\d\d[,.]\d+ *-->")
_TAGS = ("tags", "labels", "ner_tags", "pos_tags")


def infer_tasks(path: Path) -> InferredTasks:
    """Infer the tasks that a file, a folder or a pattern may be for, the likeliest first."""
    if has_picture_classes(path):
        return _of_pictures(path)
    if has_picture_classes(path / "train"):
        raise DataError(
            f"{path} must be one part of the pictures; got the parts as folders. Say: "
            f"regard train {shlex.quote(str(path / 'train'))}, and --test for that to test on."
        )
    path = shards(path)[0]
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
        return _of_records(path, [line for part in (lines, *later) for line in part])
    if (tagged := _of_words(path, lines, ending)) is not None:
        return InferredTasks((tagged,))
    if ending == ".conll":
        raise DataError(
            f"{path} must have a word and its tag a line, a tab or spaces between, and blank lines "
            f"between sentences, as its ending says; got {filled[0].text[:60]!r}."
        )
    tasks = of_table(path, lines, ending, later) if ending in TABLES else None
    return _of_text(path, lines) if tasks is None else tasks


def _is_header(line: Line, ending: str) -> bool:
    """Whether a row of a table holds nothing but names of columns that are known."""
    if ending not in TABLES:
        return False
    row = next(csv_rows([line]), line) if ending == ".csv" else line
    return {cell.strip().casefold() for cell in row.text.split("\t")} <= known_names() | {"id"}


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
    (height, width), *others = sizes
    is_small = not others and height == width <= _SIZE and height % _PATCH == 0
    settings = {"model.patch": _PATCH, **({} if is_small else {"data.size": _SIZE})}
    labels = sorted(each.name for each in path.iterdir() if each.is_dir())
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


def _of_records(path: Path, lines: Sequence[Line]) -> InferredTasks:
    """Infer the task of JSON objects from their keys."""
    records = [record for line in lines if isinstance(record := record_in(line.text), dict)]
    if not records:
        raise DataError(f"{path} must hold a JSON object a line; got {lines[0].text[:60]!r}.")
    keys = [key for key, count in Counter(k for r in records for k in r).items() if count > 1]
    keys = keys or list(records[0])
    why = f"its objects have {', '.join(map(repr, keys[:8]))}"

    def has(*names: str) -> str | None:
        return next((key for key in keys if key.casefold() in names), None)

    if (words := has("tokens", "words")) and (key := has(*_TAGS)):
        tags = [str(tag) for record in records for tag in _list(record.get(key))]
        return InferredTasks((_tagging(tags, why, _texts(records, words)),))
    if has("question") and has("context"):
        return _of_questions(records, why)
    if has("source") and has("target", "references"):
        return InferredTasks((InferredTask("sentence pairs", why),))
    objects = {k: value for k in keys if isinstance(value := records[0].get(k), Mapping)}
    inner = [f"{key}.{name}" for key, value in objects.items() for name in value]
    values = {key: [value_at(record, key) for record in records] for key in (*keys, *inner)}
    columns = [
        Column(key, ["" if value is None else str(value).strip() for value in column_values])
        for key, column_values in values.items()
        if all(isinstance(value, str | int | float | None) for value in column_values)
    ]
    if len(columns) > 1 and any(column.kind in ("text", "number") for column in columns):
        tasks = of_columns(columns, path)
        return replace(tasks, candidates=tuple(map(_as_usual, tasks.candidates)))
    raise DataError(
        f"{path}: its objects must say what to learn; got {', '.join(map(repr, keys[:12]))}. "
        "There are text and label, tokens and tags, source and target, document and summary, "
        "question, context and answers; or name the keys: regard train RECIPE "
        f"{shlex.quote(str(path))} --set data.text=KEY."
    )


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
    known = [any(one in context for one in spans) for context, spans in answers if spans]
    chinese = "-chinese" if is_chinese(_texts(records, "context")) else ""
    fraction = sum(known) / max(1, len(known))
    reading = InferredTask(
        _READING,
        f"{why}, and {fraction:.0%} of the answers stand in the text",
        f"question-answering{chinese}",
    )
    writing = InferredTask(
        "questions whose answers are written",
        f"{why}, and {1 - fraction:.0%} of the answers do not stand in the text",
        "generation-copy",
    )
    tasks = (reading, writing) if fraction >= MOST else (writing, reading)
    return InferredTasks(tasks, is_sure=fraction >= MOST or fraction < 1 - MOST / 2)


def _answers(record: Mapping[str, JsonValue]) -> list[str]:
    value = record.get("answers", record.get("answer"))
    answers = [value] if isinstance(value, str) else _list(answer_list(value))
    return [str(each.get("text") if isinstance(each, Mapping) else each) for each in answers]


def _of_words(path: Path, lines: Sequence[Line], ending: str) -> InferredTask | None:
    """Tagged words: where a header says so, or blank lines part blocks of short rows."""
    fields = [Field(name, column) for name, column in (("word", 1), ("tag", 2))]
    table = word_table(lines, ending, fields)
    rows = list(table.lines)
    filled = [line.text.split("\t") for line in rows if line.text.strip()]
    blank = len(rows) - len(filled)
    header, column = table.header, sentence_column(table)
    last = min(map(len, filled), default=0)
    word, tag = (table.columns[name] - 1 for name in ("word", "tag"))
    if table.header is None:
        tag = max(map(len, filled), default=0) - 1
    if last < 2 or len(filled) < 2 * blank or tag >= last:
        return None
    words, tags = [row[word] for row in filled], [row[tag].strip() for row in filled]
    is_short = sum(" " not in each for each in words) >= MOST * len(words)
    if not is_short or not is_label(tags):
        return None
    if blank or column is not None:
        how = f"{header[column]!r} parts" if header and column is not None else "blank lines part"
        settings: Settings = {} if header or tag == 1 else {"data.tag": tag + 1}
        marks = sum(line.text.startswith(DOCUMENT_MARK) for line in lines)
        ignored = f"; {DOCUMENT_MARK}, in {marks:,} lines, is left out" if marks else ""
        why = f"{how} its blocks of words with a tag each{ignored}"
        return _tagging(tags, why, words, settings)
    if header is None or header[tag].casefold() == "label":
        return None
    raise DataError(
        f"{path} must part its sentences; got {' and '.join(map(repr, header))}, and neither "
        "a blank line nor a column 'sentence' whose cells say which sentence a word is of."
    )


def _of_text(path: Path, lines: Sequence[Line]) -> InferredTasks:
    texts = [line.text for line in lines if line.text.strip()]
    if sum(_TIMES.match(text) is not None for text in texts) > len(texts) / 6:
        cure = (
            f"grep -vE '^[0-9]*[[:space:]]*$|-->' {shlex.quote(str(path))} > {path.stem}-text.txt"
        )
        raise DataError(
            f"{path} must hold running text; got subtitles, with numbers and times between the "
            f"lines. Take them out: {cure}"
        )
    if _MARKUP.match(texts[0].strip()):
        raise DataError(
            f"{path} must hold running text; got markup, as of XML, TMX or HTML. Take the text out "
            "of it: sentence pairs into a .tsv, a pair a line with a tab between, other text into "
            "a .txt."
        )
    words = [word for text in texts[:200] for word in text.split(" ") if word]
    if sum(_TAGGED.fullmatch(word) is not None for word in words) >= MOST * len(words):
        raise DataError(
            f"{path} must have a word and its tag a line, a tab between, and a blank line between "
            "sentences; got both in one word. Convert it: "
            rf"sed -E 's/$/ /; s#/([^/ ]+) +#\t\1\n#g' "
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
    """Words with these tags."""
    recipe = "tagging-words"
    if all(_BIO.fullmatch(tag) for tag in tags):
        recipe = "tagging-chinese-entities" if is_chinese(words) else "tagging-entities"
    examples = ", ".join(list(dict.fromkeys(tags))[:4])
    return InferredTask("words with tags", f"{reason} ({examples}, …)", recipe, settings or {})


def _as_usual(task: InferredTask) -> InferredTask:
    """The task without settings that say what holds of objects anyway."""
    settings = {name: value for name, value in task.settings.items() if (name, value) not in _USUAL}
    return replace(task, settings=settings)


def _texts(records: Sequence[Mapping[str, JsonValue]], key: str | None) -> list[str]:
    cells = [record.get(key or "", "") for record in records]
    return [" ".join(map(str, each)) if isinstance(each, list) else str(each) for each in cells]


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else []
