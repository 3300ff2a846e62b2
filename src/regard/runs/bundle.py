"""A finished run in one file, with all that its use needs, and nothing else.

A zip archive whose members lie in it as they are. So it holds no more than its own length; they
have names that are known beforehand, and none of them is run, linked to or unpickled. The sums in
``run.json`` tell whether its files are those of the training.
"""

import io
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import gettempdir, mkdtemp

from regard.errors import RegardError, RunError, excerpt
from regard.runs.card import CARD_FILE, RECIPE_FILE, SHIPPED, SUFFIX
from regard.runs.checkpoints import MODEL_FILE
from regard.runs.files import DamageError, explain_path

README = "README.md"
_NEEDED = {CARD_FILE, RECIPE_FILE, MODEL_FILE}
# The second one of versions that had shortlists; nothing reads it.
_MAY_BE = rf"{re.escape(README)}|shortlist\.safetensors"
_KNOWN = re.compile(rf"{_MAY_BE}|tokenizer/(?:\w[\w-]{{0,99}}/)?\w[\w.-]{{0,99}}", re.ASCII)
# Ours have a dozen. Their list at a bundle's end is read at once, all else in smaller parts.
_MOST_MEMBERS, _MOST_LISTED, _AT_ONCE = 100, 2**17, 2**16


def is_bundle(path: Path) -> bool:
    """Whether it is a file, and by its name or its first bytes a bundle.

    Example:
        >>> is_bundle(Path("no-such-run.regard"))
        False
    """
    with explain_path(path):
        return path.is_file() and (path.suffix == SUFFIX or zipfile.is_zipfile(path))


def shipped(path: Path) -> Path:
    """The bundle that comes with the package by this name, or the path itself.

    A file or folder at the path goes before it.

    Example:
        >>> shipped(Path("tatoeba-zh-en")).name
        'tatoeba-zh-en.regard'
        >>> shipped(Path("runs/ende")).as_posix()
        'runs/ende'
    """
    bundle = SHIPPED / f"{path}{SUFFIX}"
    with explain_path(path):
        is_name = len(path.parts) == 1 and not path.exists() and bundle.is_file()
    return bundle if is_name else path


def unpack(bundle: Path) -> Path:
    """A new folder with a bundle's files, for the caller to delete."""
    try:
        folder = Path(mkdtemp(prefix="regard-"))
        try:
            _unpack_into(bundle, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        refused = error.strerror or str(error)
        if error.filename == str(bundle):
            raise RunError(f"{bundle} must be readable; got {refused!r}.") from error
        raise RunError(
            f"{bundle} must be unpacked into {gettempdir()}; got {refused!r}. Free some space "
            "there, or name another folder in TMPDIR."
        ) from error
    return folder


@contextmanager
def naming(bundle: Path, folder: Path) -> Iterator[None]:
    """Let errors about the files of a bundle name it, not the folder they are unpacked into."""
    try:
        yield
    except RegardError as error:
        error.args = tuple(str(part).replace(str(folder), str(bundle)) for part in error.args)
        raise


def _unpack_into(bundle: Path, folder: Path) -> None:
    # Of zipfile's errors, RuntimeError is for a password, or for a feature that it has not.
    try:
        with _Brief(bundle) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if (refusal := _refusal(members, bundle.stat().st_size)) is not None:
                raise _damaged(bundle, refusal)
            for member in members:
                target = folder / PurePosixPath(member.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("xb") as written:
                    shutil.copyfileobj(source, written, _AT_ONCE)
    except RunError:
        raise
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, OverflowError) as error:
        raise _damaged(bundle, str(error) or type(error).__name__) from error


class _Brief(io.FileIO):
    """A file that is read in small parts only: a long list of members is not made, but refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        remaining = os.fstat(self.fileno()).st_size - self.tell()
        if (remaining if size is None or size < 0 else min(size, remaining)) > _MOST_LISTED:
            raise zipfile.BadZipFile(f"more than {_MOST_MEMBERS} members")
        return super().read(size) or b""


def _refusal(members: Sequence[zipfile.ZipInfo], length: int) -> str | None:
    """Reason to refuse the members, in words; None if all may be unpacked."""
    names: set[str] = set()
    total = 0
    if len(members) > _MOST_MEMBERS:
        return f"more than {_MOST_MEMBERS} members"
    for member in members:
        name = member.filename
        kind = stat.S_IFMT(member.external_attr >> 16)
        if name in names:
            return f"{name!r} twice"
        if name not in _NEEDED and not _KNOWN.fullmatch(name):
            return f"{excerpt(name)}, which is no part of a run"
        if kind not in (0, stat.S_IFREG):
            return f"{name!r}, which is no plain file"
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            return f"{name!r} compressed"
        names.add(name)
        total += member.file_size
    if total > length:
        return f"members of {total:,} bytes in a file of {length:,}"
    missing = sorted(_NEEDED - names)
    return f"no {missing[0]}" if missing else None


def _damaged(bundle: Path, got: str) -> DamageError:
    return DamageError(
        f"{bundle} must be a bundle as `regard export` writes it; got {got}. "
        "Fetch it once more from where it came."
    )
