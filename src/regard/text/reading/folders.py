"""Folders that hold a folder of texts, or of pictures, for each label."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from regard.text.reading.encodings import as_utf8

# Names of folders of texts without labels, and of parts of a data set.
_NO_LABELS = ("unsup", "unlabeled", "unlabelled")
_PARTS = {"train", "valid", "validation", "val", "dev", "test", "eval", "raw", "data"}
_TEXTS = ("", ".txt", ".text")
# Endings of picture files, which Pillow opens.
PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def has_classes(folder: Path) -> bool:
    """Whether a folder holds two folders of texts or more, and few files of its own."""
    folders = _classes(folder)
    if len(folders) < 2 or _PARTS & {subfolder.name.casefold() for subfolder in folders}:
        return False
    files = sum(file.is_file() for file in folder.iterdir())
    endings = [[file.suffix for file in _files(subfolder)] for subfolder in folders]
    # Files of news end in numbers.
    are_texts = all(ending in _TEXTS or ending[1:].isdecimal() for ending in chain(*endings))
    return all(endings) and files <= sum(map(len, endings)) and are_texts


def has_picture_classes(folder: Path) -> bool:
    """Whether a folder holds folders, two at least, of nothing but picture files."""
    folders = _classes(folder) if folder.is_dir() else []
    files = [[file.suffix.lower() in PICTURES for file in _files(path)] for path in folders]
    return len(folders) >= 2 and all(are_pictures and all(are_pictures) for are_pictures in files)


def class_lines(folder: Path) -> Iterator[bytes]:
    """The texts in such a folder as objects of JSON, which also name their files."""
    has_warned = False  # of another encoding, once for all files
    for subfolder in _classes(folder):
        for file in _files(subfolder):
            data = file.read_bytes()
            lines = as_utf8([data], None if has_warned else str(file))
            has_warned = has_warned or data.decode(errors="ignore").encode() != data
            text = b"".join(lines).decode("utf-8-sig", "surrogateescape")
            record = {"text": " ".join(text.split()), "label": subfolder.name}
            record["file"] = f"{subfolder.name}/{file.name}"
            line = json.dumps(record, ensure_ascii=False)
            yield f"{line}\n".encode("utf-8", "surrogateescape")


def _classes(folder: Path) -> list[Path]:
    every = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")
    return [path for path in every if path.name.casefold() not in _NO_LABELS]


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._")
