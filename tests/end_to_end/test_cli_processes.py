import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REGARD = [sys.executable, "-m", "regard"]
RUNS = Path(__file__).parents[1] / "fixtures" / "runs_33c24e5"

# Every command that answers and ends, one after another, and whether triton is there after each.
EVERY_COMMAND = """
import sys
from regard.cli import run_command

for command in (
    ["info", "tagging/run"],
    ["runs", "tagging"],
    ["predict", "tagging/run", "ask-words.txt", "--output", "answers.txt"],
    ["look", "translation-rnn/run", "--file", "ask-chinese.txt"],
    ["export", "tagging/run", "tagging.regard", "--to", "bundle"],
    ["data", "check", "pairs.tsv"],
    ["recipes", "tagging"],
    ["settings", "training"],
    ["evaluate", "tagging/run"],
    ["train", "tagging-words", "names.conll", "--run", "new", "--set=training.updates=2"]
):
    code = run_command(command)
    # The optimizers of torch, one of which fits baselines, load its compiler, and that triton.
    is_lean = command[0] not in ("evaluate", "train")
    print(code, "triton" in sys.modules and is_lean, command, file=sys.__stdout__)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton")
def test_no_command_loads_triton_and_nothing_else_stands_on_stderr(tmp_path):
    for name in ("tagging", "translation-rnn"):
        with zipfile.ZipFile(RUNS / f"{name}.zip") as packed:
            packed.extractall(tmp_path / name)
    shutil.copytree(RUNS / "texts", tmp_path, dirs_exist_ok=True)
    command = [sys.executable, "-c", EVERY_COMMAND]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    codes = [line for line in done.stdout.splitlines() if line.endswith("]")]
    assert len([line for line in codes if line.startswith(("0 False ", "1 False "))]) == 10, done
    for noise in ("nanobind", "leaked", "Traceback"):
        assert noise not in done.stderr


def test_a_pipe_is_answered_line_by_line_and_may_break(run):
    with subprocess.Popen(
        [*REGARD, "predict", str(run), "--beam-size", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        for text in ("我爱中国\n", "你好\n"):
            process.stdin.write(text.encode())
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # before stdin has ended
        process.stdout.close()
        process.stdin.write("我\n".encode())
        process.stdin.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


def test_a_stopped_training_saves_and_says_how_to_resume(corpus, tmp_path):
    command = [*REGARD, "train", str(corpus / "tiny.toml"), "--run", str(tmp_path / "run")]
    command += ["--set", "training.updates=1000000", "--set", "training.validate_every=20"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        metrics = tmp_path / "run" / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        _, message = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    last = message.decode().splitlines()[-1]
    assert last.startswith("stopped at update ")
    assert last.endswith("run the same command to go on")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_stopped_command_leaves_no_file_but_the_answers_so_far(run, tmp_path, number):
    out = tmp_path / "answers.txt"
    command = [*REGARD, "predict", str(run), "--beam-size", "1", "--output", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write("我爱中国\n".encode())
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        message = process.stderr.read().decode()
        assert process.wait(timeout=60) == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["answers.txt.part"]
    assert (tmp_path / "answers.txt.part").read_bytes().count(b"\n") == 1
    assert "the answers so far, 1 line, are in" in message


def test_look_serves_its_page_until_it_is_interrupted(run, tmp_path):
    with subprocess.Popen(
        [*REGARD, "look", str(run), "我爱中国", "--out", str(tmp_path / "a.html"), "--serve"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        line = next(line for line in process.stderr if line.startswith("serving it at "))
        address = line.split()[3]
        with urllib.request.urlopen(address) as answer:
            assert "我爱中国" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert (tmp_path / "a.html").exists()
