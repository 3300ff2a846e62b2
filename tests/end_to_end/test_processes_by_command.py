"""``regard train --processes`` and ``torchrun``: what is stopped, killed or wrong, by command."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.runs import Run
from regard.runs.records import read_records

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc"),
]


@pytest.fixture
def started(corpus, tmp_path):
    """Starts a command line there; what is left of it is ended."""
    running = []

    def start(*options, launcher=(), updates=100_000):
        settings = {"updates": updates, "validate_every": 20, "batch_tokens": 100}
        limits = [f"--set=training.{name}={value}" for name, value in settings.items()]
        train = ["regard", "train", str(corpus / "tiny.toml"), "--run", "run", *limits, *options]
        command = [sys.executable, "-m", *launcher, *train]
        running.append(
            subprocess.Popen(
                command,
                cwd=tmp_path,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return running[-1]

    yield start
    for each in running:
        for child in [*children(each.pid), each.pid] if each.poll() is None else []:
            os.kill(child, signal.SIGKILL)
        each.communicate()


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def updates(run):
    records = read_records(run / "metrics.jsonl")
    return max((int(record["update"]) for record in records), default=0)


def wait_until(is_so, process, seconds=100):
    end = time.monotonic() + seconds
    while not is_so():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_killed_process_is_reported_once_and_ctrl_c_stops_all(started, tmp_path):
    run = tmp_path / "run"
    first = started("--processes", "2")
    wait_until(lambda: updates(run) >= 20, first)
    os.kill(children(first.pid)[1], signal.SIGKILL)
    _, message = first.communicate(timeout=60)
    assert first.returncode == 2
    errors = [line for line in message.splitlines() if "error" in line.lower()]
    assert len(errors) == 1, message
    assert "got process 1 ended by SIGKILL" in errors[0]
    assert message.count("stopped at update") == 1
    saved = Run.open(run).newest_checkpoint().step
    assert saved >= 20

    second = started("--processes", "2")
    wait_until(lambda: updates(run) >= saved + 20, second)
    second.send_signal(signal.SIGINT)
    _, message = second.communicate(timeout=60)
    assert second.returncode == 130, message
    assert f"going on from update {saved}" in message
    assert message.count("stopped at update") == 1
    assert "error" not in message.lower()
    assert Run.open(run).newest_checkpoint().step > saved


def test_torchrun_resumes_by_itself_after_a_kill(started, tmp_path):
    run = tmp_path / "run"
    torchrun = ("torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "-m", "--")
    whole = started(launcher=torchrun, updates=160)
    wait_until(lambda: updates(run) >= 45, whole)
    os.kill(children(whole.pid)[0], signal.SIGKILL)
    _, message = whole.communicate(timeout=120)
    assert whole.returncode == 0, message
    assert message.count("going on from update") == 1
    assert Run.open(run).summary["updates"] == 160


def test_an_error_is_reported_once(started):
    broken = started("--processes", "2", "--set", "model.hidden_dimm=8")
    _, message = broken.communicate(timeout=60)
    assert broken.returncode == 2
    assert message.strip().splitlines() == [
        "error: model.hidden_dimm is not a setting of rnn_seq2seq. Did you mean model.hidden_dim?"
    ]


@pytest.mark.parametrize("delay", [0.0, 1.0, 4.0])
def test_processes_end_with_their_launcher_while_they_start(started, delay):
    launcher = started("--processes", "2")
    wait_until(lambda: len(children(launcher.pid)) == 2, launcher)
    workers = children(launcher.pid)
    time.sleep(delay)
    launcher.kill()
    launcher.wait()
    end = time.monotonic() + 20
    while alive := [each for each in workers if is_alive(each)]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
