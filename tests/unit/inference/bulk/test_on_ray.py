"""Workers of Ray give the same bytes as one process, tell nobody, and may be killed."""

import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.unit.inference.bulk.conftest import contents

from regard.errors import RunError
from regard.inference.bulk import answer_files, ray_engine

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ray's, of itself
]

# As the kernel writes 127.0.0.1, ::1 and ::ffff:127.0.0.1.
LOOPBACK = ("0100007F", f"{'0' * 24}01000000", f"{'0' * 16}FFFF00000100007F")

# Answers with two workers, and kills itself after the first file where it is told to.
_JOB = """
import json, os, signal, sys
from regard.inference.bulk import answer_files, ray_engine
run, pattern, out, kills = sys.argv[1:]
def progress(report):
    if kills == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
answer_files(run, [pattern], out, engine=ray_engine(actors=2), progress=progress)
"""


def job(translator, patterns, out, kills):
    words = [sys.executable, "-c", _JOB, str(translator), *patterns, str(out), kills]
    return subprocess.run(words, capture_output=True, text=True, env=plain_environment())


def plain_environment():
    return {name: text for name, text in os.environ.items() if not name.startswith("RAY_")}


def test_a_job_that_is_killed_and_started_again_ends_with_the_bytes_of_one_process(
    translator, patterns, files, tmp_path
):
    for place in range(6):
        (files / f"more-{place}.txt").write_text("ag\nbh\nck\n" * (place + 1), "utf-8")
    (files / "bad.txt").write_bytes(b"ag\n\xff\n")
    answer_files(translator, patterns, tmp_path / "plain")
    whole = contents(tmp_path / "plain")
    out = tmp_path / "answers"
    killed = job(translator, patterns, out, "kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    there = {name: text for name, text in contents(out).items() if ".tmp-" not in name}
    assert there
    assert there.items() <= whole.items()
    again = job(translator, patterns, out, "")
    assert again.returncode == 0, again.stderr
    assert "regard" not in again.stderr
    assert contents(out) == whole


def test_it_listens_on_the_loopback_only_and_tells_nobody(translator, patterns, tmp_path):
    listening = []

    def progress(report):
        listening.append(outside(os.getpid()))
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"

    answer_files(
        translator, patterns, tmp_path / "answers", engine=ray_engine(actors=1), progress=progress
    )
    assert [place for places in listening for place in places] == []


def test_a_cluster_that_is_not_there(translator, patterns, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(RunError, match=r"--address must be that of a Ray cluster that answers"):
        answer_files(translator, patterns, tmp_path / "answers", engine=ray_engine(address=address))


def outside(process):
    """Where this process and those below it listen, the loopback apart."""
    inodes = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[1].split(":")[0] not in LOOPBACK:
                inodes[f"socket:[{cells[9]}]"] = cells[1]
    found = []
    for number in family(process):
        for link in Path(f"/proc/{number}/fd").glob("*"):
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target in inodes:
                said = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append((inodes[target], said[:120]))
    return found


def family(process):
    """The process, and all that it has started."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(cells[1]), []).append(int(path.parent.name))
    found, new = [], [process]
    while new:
        found += new
        new = [child for each in new for child in children.get(each, ())]
    return found
