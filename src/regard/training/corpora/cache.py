"""The folder where encoded text is cached: its entries, their owners and sizes."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from regard.config import JsonValue
from regard.errors import RunError
from regard.files import explain_refusal, write_file
from regard.runs.files import make_folder, read_file, unseal
from regard.runs.lock import Lock
from regard.tasks.streaming import Shard
from regard.text import BadLines, open_text
from regard.version import __version__

# To be raised whenever the same text is encoded or kept otherwise than before.
_FORMAT = 1
SCAN, ABOUT, ENCODED, TOKENIZERS = "scan.json", "about.json", "encoded", "tokenizers"
# Ending of a folder that is still being filled.
PARTIAL = ".partial"
_SUMS = "sums"
_READ_AT_ONCE = 1 << 22


def default_cache() -> Path:
    """Default folder of encoded text, ``training.cache``: beside the compiled kernels."""
    home = os.environ.get("XDG_CACHE_HOME")
    base = Path(home) if home else Path.home() / ".cache"
    return base / "regard" / "corpora"


def key_of(table: Mapping[str, JsonValue]) -> str:
    """Fingerprint of the inputs of a cache entry."""
    whole = {**table, "format": _FORMAT, "regard": __version__}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sum_of(file: Path, cache: Path) -> str:
    """Checksum of a file's content, cached by its size and time."""
    with open_text(file):  # raises its errors
        pass
    state = file.stat()
    entry = cache / _SUMS / hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]
    now = [state.st_size, state.st_mtime_ns]
    with suppress(OSError, ValueError, TypeError):
        *before, checksum = json.loads(entry.read_text(encoding="utf-8"))
        if before == now:
            return str(checksum)
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while part := content.read(_READ_AT_ONCE):
            digest.update(part)
    hexdigest = digest.hexdigest()
    with explain_refusal(entry):
        entry.parent.mkdir(parents=True, exist_ok=True)
    write_file(entry, json.dumps([*now, hexdigest]).encode())
    return hexdigest


def sums_of(shards: Sequence[Shard], cache: Path) -> list[list[str]]:
    """The checksums of the files of each shard."""
    return [[sum_of(file, cache) for file in shard if file is not None] for shard in shards]


def make_once(folder: Path, is_made: Callable[[], bool], make: Callable[[], None]) -> None:
    """Make the missing files in a text's folder, one process at a time."""
    if is_made():
        return
    make_folder(folder)
    while True:
        try:
            lock = Lock(folder)
            break
        except RunError:
            if not os.access(folder, os.W_OK):
                raise
            time.sleep(0.2)
    try:
        if not is_made():
            make()
    finally:
        lock.release()


def read_sealed(path: Path) -> dict[str, JsonValue] | None:
    """A sealed table, if it is there and whole."""
    try:
        return unseal(read_file(path), where=path)
    except RunError:
        return None


def as_json_text(raw: bytes | None) -> str | None:
    """A line as JSON can hold it, whether it is UTF-8 or not."""
    return None if raw is None else raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    """The line that ``as_json_text`` was given."""
    return text.encode("utf-8", "surrogateescape")


def tally_to_json(lines: BadLines) -> dict[str, JsonValue]:
    """Lines left out as JSON can hold them."""
    return {"counts": {**lines.counts}, "examples": {k: [*v] for k, v in lines.examples.items()}}


def tally_from_json(table: JsonValue) -> BadLines:
    """Lines left out as ``tally_to_json`` has them."""
    tallies = cast(dict[str, JsonValue], table)
    counts = Counter(cast(dict[str, int], tallies["counts"]))
    return BadLines(counts, cast(dict[str, list[str]], tallies["examples"]))
