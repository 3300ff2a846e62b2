import errno
import os
import socket
import stat
import subprocess
import sys

import pytest

from regard.errors import RunError
from regard.runs import RunWarning
from regard.runs import lock as lock_module
from regard.runs.lock import Lock, is_held

# Holds the lock, and has a forked child that outlives it.
_HOLDER = """
import os, sys, time
from pathlib import Path
from regard.runs.lock import Lock
lock = Lock(Path(sys.argv[1]))
if os.fork() == 0:
    print(os.getpid(), flush=True)  # it has let go of the lock by now
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    command = [sys.executable, "-c", _HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        grandchild = int(holder.stdout.readline())
        try:
            expected = (
                f"is already in use by process {holder.pid} on host {socket.gethostname()}."
                " Wait until it ends"
            )
            with pytest.raises(RunError, match=expected):
                Lock(tmp_path)
            assert is_held(tmp_path)
            holder.kill()
            holder.wait()
            assert (tmp_path / "lock").read_text()  # it could not say that it went
            assert not is_held(tmp_path)
            Lock(tmp_path).release()
        finally:
            holder.kill()
            os.kill(grandchild, 9)


@pytest.mark.skipif(sys.platform == "win32", reason="locks the file alone")
def test_removing_the_file_lets_nobody_in(tmp_path):
    first = Lock(tmp_path)
    (tmp_path / "lock").unlink()
    with pytest.raises(RunError, match="already in use by another process"):
        Lock(tmp_path)
    assert not (tmp_path / "lock").exists()
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    with pytest.raises(RunError, match="already in use"):
        Lock(moved)
    first.release()
    Lock(moved).release()


@pytest.mark.skipif(sys.platform == "win32", reason="locks the file alone")
def test_where_folders_cannot_be_locked_the_file_is(tmp_path, monkeypatch):
    take = lock_module._take

    def refuse_folders(descriptor):  # as NFS does
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        take(descriptor)

    monkeypatch.setattr(lock_module, "_take", refuse_folders)
    first = Lock(tmp_path)
    with pytest.raises(RunError, match="already in use by process"):
        Lock(tmp_path)
    first.release()
    Lock(tmp_path).release()


def test_a_holder_without_a_process_id(tmp_path):
    first = Lock(tmp_path)
    (tmp_path / "lock").write_text("{")
    with pytest.raises(RunError, match="already in use by another process"):
        Lock(tmp_path)
    first.release()


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock_module, "_take", refuse)
    with pytest.warns(RunWarning, match="on a file system without locks"):
        Lock(tmp_path).release()
