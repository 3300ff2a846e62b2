"""Workers of Ray give the same bytes as one process, send no statistics, and stop on a signal."""

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.unit.inference.bulk.conftest import contents

from regard.errors import RunError
from regard.inference.bulk import answer_files, ray_engine

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
    pytest.mark.slow,
    pytest.mark.timeout(290),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ray's, of itself
]

# As the kernel writes 127.0.0.1, ::1 and ::ffff:127.0.0.1.
LOOPBACK = ("0100007F", f"{'0' * 24}01000000", f"{'0' * 16}FFFF00000100007F")


def test_a_command_that_is_ended_by_sigterm_says_so_and_no_more(translator, tmp_path):
    for number in range(500):
        (tmp_path / f"{number}.txt").write_text("ag\nbh\nck\n" * 40, "utf-8")
    out = tmp_path / "answers"
    words = ["predict", str(translator), "--input", f"{tmp_path}/*.txt", "--output", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", *words, "--engine", "ray", "--actors", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(out.glob("*.txt")):
        time.sleep(0.01)
    process.terminate()
    _, message = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, message
    assert "Traceback" not in message


def test_it_gives_the_same_bytes_listens_on_the_loopback_only_and_reports_nothing(
    translator, patterns, files, tmp_path
):
    (files / "bad.txt").write_bytes(b"ag\n\xff\n")
    listening = []

    def watched(*work):
        for report in ray_engine(actors=2)(*work):
            listening.append(outside(os.getpid()))
            assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
            yield report

    answer_files(translator, patterns, tmp_path / "plain")
    out = tmp_path / "answers"
    answer_files(translator, patterns, out, engine=watched)
    assert contents(out) == contents(tmp_path / "plain")
    assert [address for addresses in listening for address in addresses] == []


def test_a_cluster_that_is_not_there(translator, patterns, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(RunError, match=r"--address must be that of a Ray cluster that answers"):
        answer_files(translator, patterns, tmp_path / "answers", engine=ray_engine(address=address))


def outside(process):
    """Addresses that this process and its children listen on, except loopback."""
    inodes = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[1].split(":")[0] not in LOOPBACK:
                inodes[f"socket:[{cells[9]}]"] = cells[1]
    listening = []
    for number in family(process):
        for link in Path(f"/proc/{number}/fd").glob("*"):
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target in inodes:
                command = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                listening.append((inodes[target], command[:120]))
    return listening


def family(process):
    """The process, and all that it has started."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(cells[1]), []).append(int(path.parent.name))
    processes, level = [], [process]
    while level:
        processes += level
        level = [child for each in level for child in children.get(each, ())]
    return processes
