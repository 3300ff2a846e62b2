"""A run folder under kills and full disks: reading works at once, going on gives the same bytes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_training_killed_at_every_call_to_the_disk_ends_with_the_same_bytes(tmp_path: Path) -> None:
    # A kill loses nothing that the system has taken, so memory will do for a disk, and is quick.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        done = subprocess.run(
            [sys.executable, HERE / "scripted_run.py", folder],
            capture_output=True,
            env=ENVIRONMENT,
        )
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["failures"] == []
    assert report["kills"] >= len(report["calls"]) + 50
    assert {"write", "fsync", "replace", "rename"} <= set(report["calls"])


def test_a_program_can_be_counted_and_killed_inside_a_write(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "os.write(f, b'abcd')\n"
        "os.fsync(f)\n"
        "os.write(f, b'efgh')\n"
    )
    killing = [sys.executable, HERE / "killing.py"]
    subprocess.run([*killing, "count", tmp_path / "count", program, tmp_path / "a"], check=True)
    assert (tmp_path / "count").read_text() == "3"
    done = subprocess.run([*killing, "3", "inside", program, tmp_path / "b"])
    assert done.returncode == -9
    assert (tmp_path / "b").read_bytes() == b"abcdef"
