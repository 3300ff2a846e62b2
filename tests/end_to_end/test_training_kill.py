"""A training killed at random moments, some of them inside writes, ends with the same bytes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The fifty of the promise take a few minutes: REGARD_KILLS=50.
KILLS = int(os.environ.get("REGARD_KILLS", "5"))


@pytest.mark.slow
@pytest.mark.timeout(60 + 30 * KILLS)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_training_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path) -> None:
    # A kill loses nothing that the system has taken, so memory will do for a disk, and is quick.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        done = subprocess.run(
            [sys.executable, HERE / "killed_training.py", folder, str(KILLS)],
            capture_output=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["failures"] == []
    assert report["kills"] >= KILLS
