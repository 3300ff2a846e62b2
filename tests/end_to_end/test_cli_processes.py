"""What only a process of its own can show: pipes, signals, how fast it starts."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REGARD = [sys.executable, "-m", "regard"]


def test_help_loads_no_torch() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "regard", "train", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "Example: regard train" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "cyclopts" in loaded
    assert not loaded & {"torch", "numpy", "sentencepiece", "sacrebleu"}


def test_a_pipe_is_answered_line_by_line_and_may_break(run: Path) -> None:
    with subprocess.Popen(
        [*REGARD, "predict", str(run), "--beam-size", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in ("我爱中国\n", "你好\n"):
            process.stdin.write(text.encode())
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # before stdin has ended
        process.stdout.close()
        process.stdin.write("我\n".encode())
        process.stdin.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("log", ["/dev/full", "a pipe whose reader has gone"])
def test_a_training_outlives_its_log(corpus: Path, tmp_path: Path, log: str) -> None:
    command = [*REGARD, "train", str(corpus / "tiny.toml"), "--run", str(tmp_path / "run")]
    command += ["--set", "training.updates=4", "--set", "training.validate_every=2"]
    reading, writing = os.pipe()
    os.close(reading)
    with Path("/dev/full").open("w") as full:
        stream = full if log == "/dev/full" else writing
        done = subprocess.run(command, stdout=stream, stderr=stream, timeout=120)
    os.close(writing)
    assert done.returncode == 0
    assert (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop_training_saves_and_says_how_to_go_on(
    corpus: Path, tmp_path: Path, number: int
) -> None:
    command = [*REGARD, "train", str(corpus / "tiny.toml"), "--run", str(tmp_path / "run")]
    command += ["--set", "training.updates=1000000", "--set", "training.validate_every=20"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        metrics = tmp_path / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    last = said.decode().splitlines()[-1]
    assert last.startswith("stopped at update ")
    assert last.endswith("run the same command to go on")


@pytest.mark.parametrize(
    ("work", "command"),
    [
        ("checking", ["data", "check", "{corpus}/train.tsv"]),
        ("translating", ["evaluate", "{run}"]),
        ("translating", ["predict", "{run}", "{corpus}/test.tsv"]),
    ],
)
def test_people_see_how_far_long_work_is(work, command, corpus: Path, run: Path) -> None:
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")
    command = [part.format(corpus=corpus, run=run) for part in command]
    ours, theirs = pty.openpty()
    shown = b""
    with subprocess.Popen([*REGARD, *command], stdout=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        with contextlib.suppress(OSError):  # a terminal that nobody writes to any more
            while part := os.read(ours, 65536):
                shown += part
        assert child.stdout is not None
        printed = child.stdout.read()
    os.close(ours)
    assert child.returncode in (0, 1)
    assert printed
    assert b"\x1b" not in printed
    assert work in shown.decode()
    assert "100%" in shown.decode()


def test_look_serves_its_page_until_it_is_interrupted(run: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*REGARD, "look", str(run), "我爱中国", "--out", str(tmp_path / "a.html"), "--serve"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("serving it at "))
        address = line.split()[3]
        with urllib.request.urlopen(address) as answer:
            assert "我爱中国" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert (tmp_path / "a.html").exists()
