"""Compiled loops are kept, shared between processes, and done without where they cannot be had."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

CALL = """
import torch
from regard.attention import Additive, attend, explain
query = torch.linspace(-1, 1, 40).reshape(1, 1, 5, 8)
score = Additive(torch.ones(8))
print(explain(query, query, score=score))
print(f"{attend(query, query, score=score).sum().item():.4f}")
"""
SAYS = b"compiling for this processor"


def environment(folder, **others):
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")},
        "XDG_CACHE_HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        **others,
    }


def run(folder, code=CALL, **others):
    """The lines that a process prints, and what it says on its terminal."""
    terminal, process_side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(folder, **others),
        stdout=subprocess.PIPE,
        stderr=process_side,
    ) as process:
        os.close(process_side)
        output = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            output += part
        lines = process.stdout.read().decode().splitlines()
    os.close(terminal)
    assert process.returncode == 0, output.decode()
    return lines, output


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder that one process has filled, and what that process gave."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, run(folder)


def test_the_first_process_says_that_it_compiles_and_the_second_does_not(warm):
    folder, (lines, message) = warm
    assert message.count(SAYS) == 1
    assert lines[0].startswith("additive_cpu:")
    assert list(folder.glob("regard/kernels/*/**/*.nbi"))
    again, quiet = run(folder, f"{CALL}\nimport sys; print('numba' in sys.modules)")
    assert again == [*lines, "False"]
    assert SAYS not in quiet


PRODUCT = """
import sys
import numpy as np
from regard.kernels.products import packed
states, weight = np.ones((3, 5), np.float32), packed.pack(np.eye(7, 5, dtype=np.float32))
def multiply():
    out = np.zeros((3, 7), np.float32)
    packed.multiply_panels(0, 1, states, weight, np.zeros(packed.OUTPUTS, np.float32), out)
    print(out.sum(), "numba" in sys.modules)
multiply()
states.flags.writeable = False
multiply()
"""


def test_machine_code_is_loaded_without_numba_and_numba_compiles_what_it_lacks(tmp_path):
    assert run(tmp_path, PRODUCT)[0] == ["15.0 True"] * 2
    files = sorted(tmp_path.glob("regard/kernels/*/machine_code-*/*.multiply_panels-*"))
    assert len(files) == 2
    assert run(tmp_path, PRODUCT)[0] == ["15.0 False"] * 2
    for file in files[:1]:
        code = bytearray(file.read_bytes())
        code[-1] ^= 1
        file.write_bytes(code)
    assert "15.0 True" in run(tmp_path, PRODUCT)[0]
    assert run(tmp_path, PRODUCT)[0] == ["15.0 False"] * 2  # it was written again


@pytest.mark.parametrize(
    ("code", "variables", "reason"),
    [
        ("", {"NUMBA_DISABLE_JIT": "1"}, "NUMBA_DISABLE_JIT turns compiling off"),
        ("import sys; sys.modules['numba'] = None", {}, "numba cannot be loaded (ModuleNotFound"),
    ],
)
def test_without_numba_the_tiles_answer_alike_and_the_plan_says_why(warm, code, variables, reason):
    folder, (lines, _) = warm
    output, message = run(folder, f"{code}\n{CALL}", **variables)
    assert output[0].startswith("tiled:")
    assert reason in output[0]
    assert output[-1] == lines[-1]
    assert SAYS not in message


def test_a_cache_folder_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "regard").write_text("a file where a folder should be")
    lines, message = run(tmp_path, PRODUCT)
    assert lines == ["15.0 True"] * 2
    assert b"cannot be written" in message


def test_two_processes_may_compile_at_once_and_a_stopped_one_leaves_a_usable_cache(tmp_path):
    command = [sys.executable, "-c", PRODUCT]
    make = {"env": environment(tmp_path), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    stopped, *both = [subprocess.Popen(command, **make) for _ in range(3)]
    until = time.monotonic() + 120
    while not list(tmp_path.glob("regard/kernels/*")) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)
    stopped.send_signal(signal.SIGINT)
    _, message = stopped.communicate(timeout=120)
    assert stopped.returncode == 0 or b"KeyboardInterrupt" in message
    for process in both:
        out, message = process.communicate(timeout=120)
        assert process.returncode == 0, message.decode()
        assert re.fullmatch(r"(15\.0 (True|False)\n){2}", out.decode())
    assert run(tmp_path, PRODUCT)[0] == ["15.0 False"] * 2
