"""One writer for a run folder at a time."""

import contextlib
import errno
import json
import os
import socket
import sys
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from regard.config import parse_json, read_file
from regard.errors import RunError
from regard.fields import checked_table
from regard.files import explain_refusal
from regard.runs.card import RECIPE_FILE, is_run
from regard.runs.files import RunWarning, check_plain, make_folder, tidy

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Files that a killed ``Run.create`` may leave, and the next one may write over.
_BEFORE_CARD = {"lock", RECIPE_FILE}
_BUSY = {errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}
_CURE = "Wait until it ends, or train into another folder."
_MOST = 4096  # bytes of the file
_FAR = 1 << 30  # the byte Windows locks: beyond the text, which others must be able to read


class Lock:
    """The right to write to a folder, held until ``release`` or the end of the process."""

    # The folder itself and the file ``lock`` in it carry an advisory lock of the system, so it goes
    # with a killed process and is never stale, and a second process is refused even where someone
    # has removed the file. The process and host inside are for the message alone. Processes forked
    # from the holder do not hold it. NFS locks no folders, so that the file alone is locked there;
    # where the file system knows no locks at all, a warning says so.

    def __init__(self, folder: Path, *, cure: str = _CURE) -> None:
        self._folder, self._path, self._cure = folder, folder / "lock", cure
        self._descriptors: list[int] = []
        try:
            if sys.platform != "win32":  # a folder cannot be opened there
                with explain_refusal(folder):
                    itself = os.open(folder, os.O_RDONLY)
                self._hold(itself, is_enough=False)
            with explain_refusal(self._path):
                check_plain(self._path)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            self._hold(file, is_enough=True)
        except BaseException:
            self._close()
            raise
        _write_holder(file)
        _held.add(self)

    def _hold(self, descriptor: int, *, is_enough: bool) -> None:
        """Lock one of the two; where the system cannot, that matters of the last one only."""
        self._descriptors.append(descriptor)
        try:
            _take(descriptor)
        except OSError as error:
            if error.errno in _BUSY:
                process, host = _read_holder(self._path)
                # Without a process it has just come and not yet said who it is.
                holder = f"process {process} on host {host}" if process else "another process"
                raise RunError(
                    f"{self._folder} is already in use by {holder}. {self._cure}"
                ) from error
            if is_enough:
                warnings.warn(
                    f"{self._folder} is on a file system without locks ({error.strerror});"
                    " see to it that only one process trains there.",
                    RunWarning,
                    stacklevel=3,
                )

    def release(self) -> None:
        """Let others write to the folder; a second call does nothing."""
        if self._descriptors:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptors[-1], 0)
            self._close()

    @contextlib.contextmanager
    def released_on_error(self) -> Iterator["Lock"]:
        """Release the lock if the block fails."""
        try:
            yield self
        except BaseException:
            self.release()
            raise

    def _close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def is_held(folder: Path) -> bool:
    """Whether a process trains into a folder; checked without keeping one from beginning."""
    # The lock is tried only where the file names a process that may be alive, and then shared.
    # Where the file system knows no locks, that process counts as the holder.
    path = folder / "lock"
    if not _may_be_alive(path):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return True  # not ours to open: its holder is all that is known
    try:
        _take(descriptor, is_shared=True)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class _Holder(TypedDict):
    """Contents of ``lock``."""

    process: int
    host: str


def _may_be_alive(path: Path) -> bool:
    """Whether the process that a lock's file names is there, as far as this host can tell."""
    process, host = _read_holder(path)
    if process is None or host != socket.gethostname() or sys.platform == "win32":
        return process is not None
    try:
        os.kill(process, 0)  # sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # another user's
    return True


_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def _close_in_child() -> None:
    """A forked child shares its parent's locks and would keep them after the parent is killed."""
    for lock in list(_held):
        lock._close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _take(descriptor: int, *, is_shared: bool = False) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)


def _write_holder(descriptor: int) -> None:
    """Write the owner for messages; a full disk must not stop a reader of the folder."""
    holder = json.dumps({"process": os.getpid(), "host": socket.gethostname()})
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, holder.encode())


def _read_holder(path: Path) -> tuple[int | None, str]:
    """Process and host of the owner; no process where the file does not say, whoever wrote it."""
    try:
        holder = checked_table("lock", parse_json(read_file(path, most=_MOST)), _Holder)
    except (OSError, ValueError):
        return None, ""
    return (holder["process"], holder["host"]) if holder["process"] > 0 else (None, "")


def lock_new(path: Path) -> Lock:
    """The lock of a folder in which a run can be made, and which is made itself if need be."""
    make_folder(path)
    if is_run(path):
        Lock(path).release()  # whoever has made it meanwhile may be training there
    _check_empty(path)
    with Lock(path).released_on_error() as lock:
        _check_empty(path)
        tidy(path)
        return lock


def _check_empty(path: Path) -> None:
    if is_run(path):
        raise RunError(
            f"{path} must be a new folder; it already holds a run, made since this one started."
            " The same command goes on with it; to begin anew, choose another folder: --run FOLDER."
        )
    contents = {item.name for item in path.iterdir() if not item.name.startswith(".tmp-")}
    if contents - _BEFORE_CARD:
        names = ", ".join(sorted(contents - _BEFORE_CARD)[:3])
        raise RunError(f"{path} must be a new or empty folder; it holds {names}.")
