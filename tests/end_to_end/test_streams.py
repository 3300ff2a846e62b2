"""Standard streams that are closed, full, or have lost their reader: nothing is lost in silence."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full"),
]

CLOSED = "error: the output must be open; got: Bad file descriptor.\n"
FULL = (
    "error: the output must have room on its disk; got: No space left on device. Free some space.\n"
)
NO_STDIN = "error: stdin must be open to be read; got: {}. Pipe text in, or name a file.\n"


def shell(line, *arguments):
    """Run a line of a shell; REGARD is the command, and $1 and on are the arguments."""
    line = line.replace("REGARD", f"{shlex.quote(sys.executable)} -m regard")
    command = ["sh", "-c", line, "sh", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('REGARD predict "$1" <&-', NO_STDIN.format("Bad file descriptor")),
        ('echo a | REGARD predict "$1" >/dev/full', FULL),
        ("REGARD settings decoding >&-", CLOSED),
        ("REGARD trian 2>&-", ""),
    ],
)
def test_what_would_be_lost_is_an_error(run, line, message):
    done = shell(line, run)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    "line",
    [
        'echo 我 | REGARD predict "$1" --beam-size 1 2>&-',
        'REGARD predict "$1" "$2" --beam-size 1 <&-',
    ],
)
def test_unused_streams_may_be_closed(run, tmp_path, line):
    (tmp_path / "a.txt").write_text("我\n", encoding="utf-8")
    done = shell(line, run, tmp_path / "a.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


# The processes have no shape checks; what is evaluated here is only to be read.
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("streams", [">/dev/full 2>/dev/full", "<&- >&- 2>&-"])
def test_a_training_is_resumed(regard, corpus, tmp_path, streams):
    done = shell(f'REGARD train "$1" --run "$2" {streams}', corpus / "tiny.toml", tmp_path / "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # No file of the run got what was meant for a stream.
    again = regard("evaluate", tmp_path / "run", "--beam-size", 1)
    assert again.code == 0, again
    assert not any(
        b"validation at" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


def test_a_training_outlives_the_reader_of_its_report(corpus, tmp_path):
    line = '{ REGARD train "$1" --run "$2" 2>&1; echo $? >"$3"; } | head -1'
    done = shell(line, corpus / "tiny.toml", tmp_path / "run", tmp_path / "status")
    assert len(done.stdout.splitlines()) == 1
    assert (tmp_path / "status").read_text() == "0\n"
    assert (tmp_path / "run" / "model.safetensors").exists()
