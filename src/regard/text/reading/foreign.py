"""Files of programs that are not about language: messages of gettext; subtitles and markup."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from regard.errors import DataError
from regard.text.reading.annotations import LEFT_OUT

# Why nothing is learned from a message.
UNTRANSLATED = "messages without a translation, or with one marked as fuzzy"
# A part of a message, or a string that goes on with it.
_PART = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+)?"(.*)"')
# When a subtitle is seen.
_TIMES = re.compile(r"(\d+:)?\d\d:\d\d[,.]\d+ *-->|Dialogue: *\d+,\d+:\d\d:\d\d|\{\d+\}\{\d+\}")
# The beginning of a file of markup.
_MARKUP = re.compile(r"<(\?xml|!doctype|html|tmx|TEI)\b", re.IGNORECASE)
# Signs of several characters that part columns.
_COLUMN_SIGNS = ("_!_", "|||", "::")


def message_lines(lines: Iterable[str]) -> Iterator[bytes]:
    """The messages of gettext's ``.po`` as lines of JSON: the source and its translation."""
    parts: dict[str, str] = {}
    key, is_fuzzy = "", False
    for line in chain(map(str.strip, lines), ['msgid ""']):
        match = _PART.fullmatch(line)
        is_next = line.startswith("#") or (match is not None and match[1] in ("msgctxt", "msgid"))
        if is_next and any(name.startswith("msgstr") for name in parts):
            yield from _messages(parts, is_fuzzy)
            parts, key, is_fuzzy = {}, "", False
        is_fuzzy = is_fuzzy or (line.startswith("#,") and "fuzzy" in line)
        if match is not None:
            key = match[1] or key
            part = match[2]
            with suppress(ValueError):
                part = json.loads(f'"{part}"')
            parts[key] = parts.get(key, "") + part


def _messages(parts: dict[str, str], is_fuzzy: bool) -> Iterator[bytes]:
    """One message, or the singular and the plural; none of the header."""
    targets = [text for name, text in parts.items() if name.startswith("msgstr")]
    sources = [parts[name] for name in ("msgid", "msgid_plural") if parts.get(name)]
    for source, target in zip(sources, targets, strict=False):
        is_done = target.strip() and not is_fuzzy
        more = {"target": target} if is_done else {LEFT_OUT: UNTRANSLATED}
        yield f"{json.dumps({'source': source, **more})}\n".encode()


def check_no_subtitles(path: Path, lines: Sequence[str]) -> None:
    """Raise DataError where the first lines of a file are those of subtitles."""
    texts = [line for line in lines if line.strip()]
    times = [text for text in texts if _TIMES.match(text)]
    if len(times) > len(texts) / 6:
        cure = "Save their text, a line each."
        if "-->" in times[0]:
            command = f"grep -vE '^[0-9]*[[:space:]]*$|-->' {shlex.quote(str(path))}"
            cure = f"Take them out: {command} > {path.stem}-text.txt ."
        raise DataError(
            f"{path} must hold running text; got subtitles, with numbers and times between the "
            f"lines. {cure} Of two languages, line n of one must translate line n of the other."
        )


def check_no_markup(path: Path, first: str) -> None:
    """Raise DataError where the first line of a file is that of XML, TMX or HTML."""
    if _MARKUP.match(first.strip()):
        raise DataError(
            f"{path} must hold running text; got markup, as of XML, TMX or HTML. Take the text out "
            "of it: sentence pairs into a .tsv, a pair a line with a tab between, other text into "
            "a .txt."
        )


def check_no_column_signs(path: Path, texts: Sequence[str]) -> None:
    """Raise DataError where a sign of several characters parts columns in every line."""
    if sign := next((sign for sign in _COLUMN_SIGNS if all(sign in text for text in texts)), None):
        raise DataError(
            f"{path} must have tabs between its columns; got {sign!r} in every line. Convert it: "
            rf"sed 's/ *{sign} */\t/g' {shlex.quote(str(path))} > "
            f"{shlex.quote(f'{path.stem}.tsv')}"
        )
