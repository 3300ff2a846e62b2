"""Files that are whole or not there, at whatever moment the process or the disk stops.

A file is written beside its place under a temporary name, synced to the disk, and then renamed into
its place; a rename is all or nothing. A name that a killed writer leaves behind starts with
``.tmp-``.
"""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RunError

TEMPORARY = ".tmp-"
# The disk is full, the user's quota of it is, or the file is beyond the largest size allowed.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_file(path: Path, *parts: bytes | memoryview) -> None:
    """Put ``parts`` in turn at ``path``: a reader sees the old file or the whole new one."""
    with new_file(path) as temporary:
        fill_file(temporary, *parts)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, which appears at ``path`` when the block ends well, and else not at all.

    The target of a link is replaced, not the link. A device or a pipe is written as it is.

    Raises:
        RunError: The folder is not there, the path is not to be written, or the disk is full.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.txt"
        >>> with new_file(path) as temporary:
        ...     _ = temporary.write_text("yes")
        ...     path.exists()
        False
        >>> path.read_text()
        'yes'
    """
    check_writable(path)
    with explain_refusal(path):
        if path.exists() and not path.is_file():
            yield path
            return
        place = Path(os.path.realpath(path))
        # A name of its own, since others may write to the same place; and the place's ending.
        temporary = place.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{place.suffix}")
        try:
            yield temporary
            if place.exists():
                shutil.copymode(place, temporary)
            sync_file(temporary)
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(place.parent)


def check_writable(path: Path) -> None:
    """Raise RunError if no file can be written at ``path``: before there is work to lose."""
    with explain_refusal(path):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            mode = None
        folder = Path(os.path.realpath(path)).parent
        if mode is not None and stat.S_ISDIR(mode):
            raise RunError(f"{path} must be a file to write; it is a folder. Name a file in it.")
        if mode is None and not folder.is_dir():
            raise RunError(
                f"{path} must be in a folder that exists; there is no {folder}. Make that folder, "
                "or choose another file."
            )
        # A rename would not ask whether the file may be written.
        if not os.access(folder if mode is None else path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def fill_file(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file of a folder that is not in its place yet, and is synced as a whole."""
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        for part in parts:
            write_all(descriptor, part)


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write all of ``content``, of which the system may take a part, and at most 2 GiB at once."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def sync_file(path: Path) -> int:
    """Push a file to the disk; its length in bytes, 0 if there is none."""
    if not path.exists():
        return 0
    with explain_refusal(path), opened(path, os.O_RDWR) as descriptor:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size


def sync_folder(folder: Path) -> None:
    """Push the names in a folder to the disk, so that a rename outlives a power cut."""
    if sys.platform == "win32":  # a folder cannot be opened there; renames are journaled
        return
    with explain_refusal(folder), opened(folder, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """The descriptor of a file, for a block."""
    descriptor = os.open(path, flags, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def explain_refusal(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write ``path`` into a RunError with the cure."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read it has gone, and misses nothing
    except OSError as error:
        refused = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise RunError(
                f"{path} must fit on its disk; got {refused!r}."
                " What was saved before is kept. Free some space and run the same command again."
            ) from error
        raise RunError(f"{path} must be writable; got {refused!r}.") from error
