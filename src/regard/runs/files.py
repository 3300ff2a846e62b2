"""Folders that are whole or not there, and files that carry their checksums.

Remains of a killed writer start with ``.tmp-`` or ``.old-``, and ``tidy`` clears them away.
One writer at a time is assumed: the lock of the run folder sees to that.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from regard import config
from regard.config import JsonValue
from regard.errors import RunError, SettingError
from regard.fields import checked_table
from regard.files import TEMPORARY, explain_refusal, opened, sync_file, sync_folder, write_all

TableT = TypeVar("TableT", bound=Mapping[str, object])

_REPLACED = ".old-"
_SEAL = "sha256"
# Most bytes of a sealed table, such as a training's position or the answers of bulk work.
_MOST_SEALED = 2**28


class DamageError(RunError):
    """A file that is missing, or does not fit its checksum."""


class RunWarning(UserWarning):
    """A damaged, unfinished or unprotected part of a run folder, and the action taken."""


def check_plain(path: Path) -> None:
    """Raise RunError if writing to ``path`` would write to another file, or none."""
    # In a folder of someone else's a link may lead to a file of ours.
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a link" if path.is_symlink() else "none"
        raise RunError(f"{path} must be a plain file to be written; got {kind}. Remove it.")


def make_folder(path: Path) -> None:
    """Make an empty folder and those above it, so that they outlive a power cut."""
    with explain_path(path):
        is_file = path.exists() and not path.is_dir()
    if is_file:
        raise RunError(f"{path} must be a folder; it is a file. Choose another: --run FOLDER.")
    with explain_refusal(path):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        if missing:
            path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which replaces ``path`` when the block ends well, and else not at all."""
    temporary = path.with_name(TEMPORARY + path.name)
    with explain_refusal(path):
        try:
            if temporary.exists():
                shutil.rmtree(temporary)
            temporary.mkdir()
            yield temporary
            _sync_tree(temporary)
            _replace_folder(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def remove_folder(path: Path) -> None:
    """Delete a folder so that it is never seen half deleted."""
    with explain_refusal(path):
        doomed = path.with_name(TEMPORARY + path.name)
        path.rename(doomed)
        shutil.rmtree(doomed)


def tidy(folder: Path) -> None:
    """Clear away the leftovers of a killed writer in ``folder``; only under its lock."""
    with explain_refusal(folder):
        for leftover in sorted(folder.glob(f"{_REPLACED}*")):
            original = leftover.with_name(leftover.name.removeprefix(_REPLACED))
            if original.exists():
                shutil.rmtree(leftover)
            else:
                leftover.rename(original)
        for leftover in sorted(folder.glob(f"{TEMPORARY}*")):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()


def append(path: Path, content: bytes) -> None:
    """Add ``content`` to a file, or nothing of it if the disk is full; not synced."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with explain_refusal(path), opened(path, flags) as descriptor:
        before = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, content)
        except BaseException:
            os.ftruncate(descriptor, before)
            raise


def cut(path: Path, length: int) -> None:
    """Shorten a file to ``length`` bytes; a shorter or missing one is left alone."""
    if path.exists() and path.stat().st_size > length:
        with explain_refusal(path):
            os.truncate(path, length)


def checksum(*parts: bytes | memoryview) -> str:
    """The sha256 of ``parts``, one after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """The checksum of every file below ``folder``, by its path from there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): checksum(path.read_bytes()) for path in files}


def read_checked(path: Path, expected: str) -> bytes:
    """The content of a file whose checksum is known."""
    content = read_file(path)
    _compare(path, checksum(content), expected)
    return content


def check_file(path: Path, expected: str) -> None:
    """Raise DamageError unless a file has this checksum; no more than a part of it is in memory."""
    with _explain_reading(path):
        config.check_plain_file(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    _compare(path, digest, expected)


def _compare(path: Path, digest: str, expected: str) -> None:
    if digest != expected:
        raise DamageError(
            f"{path} must have the recorded sha256 {expected[:12]}…; it has another."
            " The file is damaged."
        )


def read_file(path: Path, *, most: int | None = None) -> bytes:
    """The content of a file; a missing one, or one the disk cannot return, counts as damaged."""
    with _explain_reading(path):
        return config.read_file(path, most=most)


@contextmanager
def _explain_reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = DamageError if error.errno in (errno.ENOENT, errno.EIO) else RunError
        raise kind(f"{path} must be readable; got {error.strerror!r}.") from error


def seal(table: Mapping[str, object]) -> bytes:
    """``table`` as readable JSON that carries its own checksum as the last line."""
    return _dump({**table, _SEAL: checksum(_dump(table))})


def unseal(content: bytes, *, where: Path) -> dict[str, JsonValue]:
    """The table ``seal`` wrote; ``where`` names the file in messages."""
    with suppress(ValueError):
        table = config.parse_json(content)
        if isinstance(table, dict) and table.pop(_SEAL, None) and seal(table) == content:
            return table
    raise DamageError(f"{where} must carry the checksum of its content; it does not: damaged.")


def read_sealed(path: Path, kind: type[TableT]) -> TableT:
    """The table ``seal`` wrote into a file."""
    return parse_sealed(unseal(read_file(path, most=_MOST_SEALED), where=path), kind, where=path)


def parse_sealed(table: Mapping[str, JsonValue], kind: type[TableT], *, where: Path) -> TableT:
    """A sealed table, checked against its kind: its checksum anyone can make fit."""
    try:
        return checked_table(str(where), table, kind)
    except SettingError as error:
        raise DamageError(f"{error} It is damaged.") from error


@contextmanager
def explain_path(path: Path) -> Iterator[None]:
    """Turn the system's refusal to look at ``path`` into a RunError."""
    try:
        yield
    except (OSError, ValueError) as error:  # of a NUL character it is a ValueError
        got = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"{path} must be a path that can be looked at; got {got!r}. Choose another."
        ) from error


def _dump(table: Mapping[str, object]) -> bytes:
    return json.dumps(table, indent=1, allow_nan=False).encode() + b"\n"


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
        else:
            sync_file(path)
    sync_folder(folder)


def _replace_folder(new: Path, path: Path) -> None:
    """Rename ``new`` to ``path``; folders cannot be swapped, so an old one steps aside first."""
    aside = path.with_name(_REPLACED + path.name)
    if path.exists():
        path.rename(aside)
    try:
        new.rename(path)
    except OSError:
        if aside.exists():
            aside.rename(path)
        raise
    sync_folder(path.parent)
    if aside.exists():
        shutil.rmtree(aside)
