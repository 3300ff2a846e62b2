"""Forms of text files, recognised by ending or first lines; all but columns become lines of JSON.

JSON in other layouts than an object a line, tables with objects in their cells, fastText's labelled
lines, brat's annotations and folders with one folder a label all read as an object of JSON a line.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path

from regard.checks import as_path
from regard.config import JsonValue
from regard.errors import DataError
from regard.progress import is_displayed, progress
from regard.text.reading.annotations import brat_lines
from regard.text.reading.cells import have_object_cells, json_line, line_of_cell, lines_of_cells
from regard.text.reading.encodings import LONGEST, MARK, TooLongError
from regard.text.reading.folders import class_lines, has_classes
from regard.text.reading.foreign import check_no_subtitles, message_lines
from regard.text.reading.opening import PACKED, TABLES, opened

# Lines between two advances of the progress.
_LINES_BETWEEN = 4096
# Endings that name the form of a file, and their synonyms.
_NAMED = (".tsv", ".csv", ".jsonl", ".conllu")
_SAME_AS = {
    **dict.fromkeys((".ndjson", ".jsonlines", ".jl"), ".jsonl"),
    **dict.fromkeys((".bio", ".bio2", ".iob", ".iob2", ".bioes", ".bilou", ".bmes"), ".conll"),
    ".tab": ".tsv",
    ".pot": ".po",
}
# The form of fastText's lines, which are read as objects of JSON.
_FASTTEXT = ".fasttext"
# Forms of tables with objects or lists in cells, of brat's annotations and gettext's messages.
_OBJECT_CELLS, BRAT, _MESSAGES = ".cells", ".ann", ".po"
# Forms whose lines are read as objects of JSON.
_AS_OBJECTS = (_FASTTEXT, _OBJECT_CELLS, BRAT, _MESSAGES)
# Before a label in fastText's lines.
_LABEL = "__label__"
# Signs that part the cells of a table, where its ending does not say.
_DELIMITERS = (",", ";", "|")
_OBJECT = re.compile(r"""\[?\s*\{\s*(["']|$)""")
_LEAST_ROWS = 3
# Rows without a tab that say that a .tsv is none.
_LEAST_CSV = 12
# The key at which an object may have the list of its records, if it has others too.
_LISTS = ("data", "rows", "examples", "records", "instances", "items", "train")
# A list of objects, or of texts with their annotations, as spaCy's examples are.
_LIST = re.compile(rb'\[\s*(\{|$|\[\s*")')
_GAP = re.compile(r"[\s,]*")
# Share of rows that have as many cells as most.
_MOST_TABBED, _MOST = 0.9, 0.98


@contextmanager
def open_text(path: str | Path) -> Iterator[Iterable[bytes]]:
    r"""The raw lines of ``path``, decompressed if it ends in ``.gz`` or ``.zst``.

    They are in UTF-8, whatever the file is in: see ``as_utf8``. The rows of a ``.parquet`` or
    ``.arrow`` table, the objects of JSON, the texts of fastText and those in a folder of folders,
    one for each label, are lines of JSON.

    Raises:
        DataError: The file is missing, unreadable, damaged or no text.
        SettingError: It is a table, and pyarrow is not installed.

    Example:
        >>> import gzip, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt.gz"
        >>> _ = path.write_bytes(gzip.compress(b"one\ntwo\n"))
        >>> with open_text(path) as lines:
        ...     list(lines)
        [b'one\n', b'two\n']
    """
    path = as_path("path", path)
    is_folder = path.is_dir() and has_classes(path)
    classes = class_lines(path) if is_folder else None
    with opened(path, classes) as file:
        lines = file.lines
        if file.head is not None:
            head = _texts(file.head)
            form = form_of(head, _named_ending(path))
            if form == ".jsonl":
                lines = object_lines(lines, str(path))
            elif form == _FASTTEXT:
                lines = labelled_lines(lines)
            elif form == _OBJECT_CELLS:
                lines = lines_of_cells(lines)
            elif form == BRAT:
                lines = _annotated_lines(path, lines)
            elif form == _MESSAGES:
                lines = message_lines(_texts(lines))
            else:
                check_no_subtitles(path, head)
        yield _with_progress(lines, file.position, path) if is_displayed() else lines


def lines_of(path: Path) -> Iterator[bytes]:
    """The raw lines of a file, which is opened when the first is asked for."""
    with open_text(path) as lines:
        yield from lines


def text_suffix(path: Path) -> str:
    """The ending of a file's form: by its name without compression, or by its first lines."""
    if path.suffix in TABLES or (path.is_dir() and has_classes(path)):
        return ".jsonl"
    ending = _named_ending(path)
    if ending in (".jsonl", ".conllu") or not path.is_file():
        return ".jsonl" if ending == ".json" else ending
    status = path.stat()
    form = _form_of_file(path, ending, status.st_size, status.st_mtime_ns)
    return ".jsonl" if form in _AS_OBJECTS else form


@lru_cache
def _form_of_file(path: Path, ending: str, size: int, changed: int) -> str:
    with opened(path) as file:
        return form_of(_texts(file.head or ()), ending)


def _named_ending(path: Path) -> str:
    plain = path.with_suffix("") if path.suffix in PACKED else path
    return _SAME_AS.get(plain.suffix.lower(), plain.suffix.lower())


def _texts(lines: Iterable[bytes]) -> list[str]:
    return [line.removeprefix(MARK).decode("utf-8", "replace") for line in lines]


def _with_progress(
    lines: Iterable[bytes], position: Callable[[], int], path: Path
) -> Iterator[bytes]:
    """Iterate over lines with a progress bar over the file's bytes."""
    size, done = max(1, path.stat().st_size), 0
    with progress(f"reading {path.name}", 1.0) as advance:
        for number, line in enumerate(lines):
            if number % _LINES_BETWEEN == 0:
                reached = position()
                advance((reached - done) / size)
                done = reached
            yield line


def form_of(lines: Sequence[str], ending: str) -> str:
    """The ending that fits a file with these first lines; ``.json`` is left to SQuAD's layout."""
    filled = [line for line in lines if line.strip()]
    if not filled or ending in (*_NAMED, BRAT, _MESSAGES):
        return _form_of_named(filled, ending)
    if ending == ".json":
        head = "\n".join(filled)
        is_squad = '"paragraphs"' in head and ('"data"' in head or '"qas"' in head)
        is_squad = is_squad or ('"qas"' in head and '"context' in head)
        return ".json" if is_squad else ".jsonl"
    if ending != ".conll":
        if _OBJECT.match(" ".join(filled[:2]).strip()):
            return ".jsonl"
        if all(line.startswith(_LABEL) for line in filled):
            return _FASTTEXT
    rows = [row for row in filled if not row.startswith("#")]
    if any(row.count("\t") == 9 and row.partition("\t")[0] in ("1", "1-2") for row in rows):
        return ".conllu"
    if ending == ".conll" or _are_tagged(lines, rows):
        return ".conll"
    if len(rows) < _LEAST_ROWS:
        return ending
    if _share([row.count("\t") for row in rows]) >= _MOST_TABBED:
        return ".csv" if _are_quoted(rows) else ".tsv"
    return ".csv" if _are_delimited(rows) else ending


def _form_of_named(rows: Sequence[str], ending: str) -> str:
    if ending in (".csv", ".tsv") and have_object_cells(rows):
        return _OBJECT_CELLS
    is_csv = ending == ".tsv" and (_is_csv(rows) or _are_quoted(rows))
    return ".csv" if is_csv else ending


def _are_quoted(rows: Sequence[str]) -> bool:
    """Whether a column of nearly all rows stands in quotation marks, which only CSV takes off."""
    cells = [cell for row in rows for cell in enumerate(row.rstrip("\r\n").split("\t"))]
    quoted = Counter(n for n, cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"')
    return len(rows) >= _LEAST_ROWS and max(quoted.values(), default=0) >= _MOST * len(rows)


def _is_csv(rows: Sequence[str]) -> bool:
    """Whether rows of a .tsv have no tab, and another sign instead."""
    has_tab = any("\t" in row for row in rows)
    return len(rows) >= _LEAST_CSV and not has_tab and _are_delimited(rows)


def _are_delimited(rows: Sequence[str]) -> bool:
    """Whether nearly all rows have as many commas, semicolons or bars outside of quotes."""
    counts = (_delimiters_of(rows, delimiter) for delimiter in _DELIMITERS)
    return any(_share(row_counts) >= _MOST for row_counts in counts)


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
    """The number of delimiters of each row; none where a row is too long for cells."""
    lines = (row.replace("\r", " ") for row in rows)
    try:
        return [len(cells) - 1 for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return [0]


def _share(counts: Sequence[int]) -> float:
    """The share of rows that have as many delimiters as most, if they have any."""
    ((most, rows),) = Counter(counts).most_common(1)
    return rows / len(counts) if most else 0.0


def labelled_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of fastText as objects of JSON; several labels are a list."""
    for line in lines:
        words = line.removeprefix(MARK).decode("utf-8", "surrogateescape").split()
        labels = [word.removeprefix(_LABEL) for word in words if word.startswith(_LABEL)]
        text = " ".join(word for word in words if not word.startswith(_LABEL))
        label = {"label": labels[0] if len(labels) == 1 else labels} if labels else {}
        yield json_line({**label, "text": text}) if words else line


def _annotated_lines(path: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of the text beside brat's annotations, as objects of JSON with their spans."""
    text = path.with_suffix(".txt")
    if not text.is_file():
        raise DataError(
            f"{path} must stand beside its text, as brat has it; there is no {text.name}."
        )
    with opened(text) as file:
        yield from brat_lines(_texts(file.lines), _texts(lines), str(path))


def object_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Lines of a file of JSON as one object a line, whatever its layout."""
    lines = iter(lines)
    head: list[bytes] = []
    for line in lines:
        if not _filled(head) and line.removeprefix(MARK).lstrip().startswith(b"{'"):
            yield from map(line_of_cell, chain([*head, line], lines))  # as Python prints them
            return
        head.append(line)
        if len(_filled(head)) == 2:
            break
    if not _is_one_a_line(_filled(head)):
        text = _joined(chain(head, lines)).removeprefix(MARK).decode("utf-8", "surrogateescape")
        lines, head = map(json_line, _records(text, name)), []
    yield from head
    yield from lines


def _joined(lines: Iterable[bytes]) -> bytes:
    head, size = [], 0
    for line in lines:
        head.append(line)
        size += len(line)
        if size >= LONGEST:
            raise TooLongError
    return b"".join(head)


def _filled(lines: Sequence[bytes]) -> list[bytes]:
    return [text for line in lines if (text := line.removeprefix(MARK).strip())]


def _is_one_a_line(lines: Sequence[bytes]) -> bool:
    """Whether a file has an object a line, as far as its first two lines show."""
    if not lines or not lines[0].startswith((b"{", b"[")):
        return True
    if lines[0].startswith(b"["):
        return _LIST.match(lines[0]) is None
    try:
        record = json.loads(lines[0])
    except (ValueError, RecursionError):
        return len(lines) < 2 or lines[1].startswith(b"{")  # a line that is broken
    return len(lines) > 1 or _rows(record) is None


def _records(text: str, name: str) -> Iterator[JsonValue]:
    values = json_values(text, name)
    first, second = next(values, None), next(values, None)
    if second is None:
        rows = _rows(first) if isinstance(first, dict) else None
        yield from [first] if rows is None else rows
    else:
        yield from chain((first, second), values)


def json_values(text: str, name: str) -> Iterator[JsonValue]:
    """The values of a list, or those that stand one after the other."""
    decoder = json.JSONDecoder(strict=False)
    position = _end_of_gap(text, 0)
    is_list = text.startswith("[", position)
    position = _end_of_gap(text, position + is_list)
    while position < len(text) and not (is_list and text.startswith("]", position)):
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise DataError(f"{name}:{error.lineno}: not JSON: {error.msg}.") from None
        except (ValueError, RecursionError):
            raise DataError(
                f"{name}: not JSON that can be read: it is nested too deeply, or holds a number of "
                "thousands of digits."
            ) from None
        yield value
        position = _end_of_gap(text, position)
    if is_list and position >= len(text):
        raise DataError(f"{name}: not JSON: its list does not end. It is cut short.")


def _end_of_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    assert gap is not None
    return gap.end()


def _rows(record: Mapping[str, JsonValue]) -> list[JsonValue] | None:
    """The records that an object is made of; None where it is one itself."""
    if isinstance(names := record.get("columns"), list) and _is_list(record.get("data"), list):
        return [dict(zip(map(str, names), row, strict=False)) for row in record["data"]]  # type: ignore[union-attr, arg-type]
    annotated = record.get("annotations")
    if isinstance(annotated, list) and any(isinstance(entry, list) for entry in annotated):
        return [entry for entry in annotated if entry is not None]
    names = record if len(record) == 1 else _LISTS
    rows = next((record[key] for key in names if _is_list(record.get(key), dict)), None)
    if isinstance(rows, list):
        return [row.get("row", row) if "row_idx" in row else row for row in rows]
    inner = [value for value in record.values() if isinstance(value, dict)]
    if len(inner) < max(2, len(record)):
        return None
    if all(key.isdecimal() for value in inner for key in value):  # a column each, as of pandas
        return [
            {name: value.get(key) for name, value in record.items()}  # type: ignore[union-attr]
            for key in inner[0]
        ]
    return list(inner) if len({*map(frozenset, inner)}) == 1 else None


def _is_list(value: JsonValue, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, kind) for v in value)
