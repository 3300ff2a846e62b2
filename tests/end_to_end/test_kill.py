"""A training under kills and full disks: reading works at once, going on gives the same bytes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
# The fifty of the promise take a few minutes: REGARD_KILLS=50.
KILLS = int(os.environ.get("REGARD_KILLS", "5"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes"),
]


def report_of(script: str, tmp_path: Path, *arguments: object) -> dict[str, Any]:
    # A kill loses nothing that the system has taken, so memory will do for a disk, and is quick.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        done = subprocess.run(
            [sys.executable, HERE / script, folder, *map(str, arguments)],
            capture_output=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["failures"] == []
    return report


def test_training_killed_at_every_call_to_the_disk_ends_with_the_same_bytes(tmp_path: Path) -> None:
    report = report_of("scripted_run.py", tmp_path)
    assert report["kills"] >= len(report["calls"]) + 50
    assert {"write", "fsync", "replace", "rename"} <= set(report["calls"])


@pytest.mark.timeout(60 + 30 * KILLS)
def test_a_training_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path) -> None:
    report = report_of("killed_training.py", tmp_path, KILLS)
    assert report["kills"] >= KILLS
