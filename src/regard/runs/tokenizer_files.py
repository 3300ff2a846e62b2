"""The files of a run's tokenizer, each with its checksum."""

import re
from pathlib import Path
from typing import TypedDict

from regard.errors import RunError, excerpt
from regard.runs.files import DamageError, checksum, known_table, read_file, unseal

CHECKSUMS = "checksums.json"
_MOST_LISTING = 2**20  # bytes
# A path to somewhere below a folder: no part of it leads upwards, to a root or to a drive.
_INSIDE = re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\:\0]+/)*(?!\.{1,2}$)[^/\\:\0]+")


class _Listing(TypedDict):
    """Contents of ``checksums.json``."""

    files: dict[str, str]


def tokenizer_files(folder: Path, expected: str | None) -> dict[str, str]:
    """Checksums of the tokenizer's files by their paths, if the listing is the expected one."""
    listing = folder / CHECKSUMS
    content = read_file(listing, most=_MOST_LISTING)
    files = known_table(unseal(content, where=listing), _Listing, where=listing)["files"]
    if expected not in (None, checksum(content)):
        raise RunError(
            f"{folder} must hold the tokenizer that the run began with; got another one. "
            "Restore it from a copy: the weights know only their own."
        )
    for name in files:
        if not _INSIDE.fullmatch(name):
            raise DamageError(
                f"{listing} must name files of the tokenizer; got {excerpt(name)}. It is damaged."
            )
    return files
