"""Records that files hold otherwise than one object of JSON a line, as such lines.

A list of objects, objects over several lines, an object around them as pandas and Hugging Face
write it, and the labelled lines of fastText.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from regard.config import JsonValue
from regard.errors import DataError
from regard.text.forms import LABEL

# The key at which an object may have the list of its records.
_LISTS = ("data", "rows", "examples", "records", "instances", "items", "train")
# Bytes that a line, or a file that is one value of JSON, stays below: they are read at once.
LONGEST = 1 << 29
_MARK = b"\xef\xbb\xbf"
_LIST = re.compile(rb"\[\s*(\{|$)")
_GAP = re.compile(r"[\s,]*")


def labelled_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Lines of fastText as objects of JSON; a text with several labels has a list of them.

    Example:
        >>> list(labelled_lines([b"__label__good Tea .\n", b"__label__a __label__b Both\n"]))
        [b'{"label": "good", "text": "Tea ."}\n', b'{"label": ["a", "b"], "text": "Both"}\n']
    """
    for line in lines:
        words = line.removeprefix(_MARK).decode("utf-8", "surrogateescape").split()
        labels = [word.removeprefix(LABEL) for word in words if word.startswith(LABEL)]
        text = " ".join(word for word in words if not word.startswith(LABEL))
        label = {"label": labels[0] if len(labels) == 1 else labels} if labels else {}
        yield _line({**label, "text": text}) if words else line


def object_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    r"""Objects of JSON, one a line, of a file that may have them otherwise.

    Args:
        lines: Of the file, in UTF-8.
        name: Of the file, for messages.

    Raises:
        DataError: The file is one list or object, and no JSON.

    Example:
        >>> list(object_lines([b'[{"text": "a"},\n', b' {"text": "b"}]\n'], "a.json"))
        [b'{"text": "a"}\n', b'{"text": "b"}\n']
        >>> list(object_lines([b'{"data": [{"text": "a"}]}'], "a.json"))
        [b'{"text": "a"}\n']
    """
    lines = iter(lines)
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if len(_filled(head)) == 2:
            break
    if not _is_one_a_line(_filled(head)):
        text = (
            _joined(chain(head, lines), name).removeprefix(_MARK).decode("utf-8", "surrogateescape")
        )
        lines, head = map(_line, _records(text, name)), []
    yield from head
    yield from lines


def too_long(name: str) -> DataError:
    """Error about a file of one line, or one value of JSON, that is too large to be read whole."""
    return DataError(
        f"{name} must have lines of less than {LONGEST >> 20:,} MiB; got a longer one, or JSON of "
        "that size that is not an object a line, which is JSONL. Convert JSON: "
        f"jq -c '.[]' {name} > {name.removesuffix('.json')}.jsonl"
    )


def _joined(lines: Iterable[bytes], name: str) -> bytes:
    found, size = [], 0
    for line in lines:
        found.append(line)
        size += len(line)
        if size >= LONGEST:
            raise too_long(name)
    return b"".join(found)


def _filled(lines: Sequence[bytes]) -> list[bytes]:
    return [text for line in lines if (text := line.removeprefix(_MARK).strip())]


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
    values = _values(text, name)
    first, second = next(values, None), next(values, None)
    if second is None:
        rows = _rows(first) if isinstance(first, dict) else None
        yield from [first] if rows is None else rows
    else:
        yield from chain((first, second), values)


def _values(text: str, name: str) -> Iterator[JsonValue]:
    """The values of a list, or those that stand one after the other."""
    decoder = json.JSONDecoder(strict=False)
    place = _end_of_gap(text, 0)
    is_list = text.startswith("[", place)
    place = _end_of_gap(text, place + is_list)
    while place < len(text) and not (is_list and text.startswith("]", place)):
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise DataError(f"{name}:{error.lineno}: not JSON: {error.msg}.") from None
        except (ValueError, RecursionError):
            raise DataError(
                f"{name}: not JSON that can be read: it is nested too deeply, or holds a number of "
                "thousands of digits."
            ) from None
        yield value
        place = _end_of_gap(text, place)
    if is_list and place >= len(text):
        raise DataError(f"{name}: not JSON: its list does not end. It is cut short.")


def _end_of_gap(text: str, place: int) -> int:
    gap = _GAP.match(text, place)
    assert gap is not None
    return gap.end()


def _rows(record: Mapping[str, JsonValue]) -> list[JsonValue] | None:
    """The records that an object is made of; None where it is one itself."""
    if isinstance(names := record.get("columns"), list) and _is_list(record.get("data"), list):
        return [dict(zip(map(str, names), row, strict=False)) for row in record["data"]]  # type: ignore[union-attr, arg-type]
    found = next((record[key] for key in _LISTS if _is_list(record.get(key), dict)), None)
    if isinstance(found, list):
        return [row.get("row", row) if "row_idx" in row else row for row in found]
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


def _line(record: object) -> bytes:
    try:
        return f"{json.dumps(record, ensure_ascii=False)}\n".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a character, which JSON may spell
        return f"{json.dumps(record)}\n".encode()
