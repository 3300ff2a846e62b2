"""``regard compare`` prints its tables, and writes a record and a page."""

import json
from pathlib import Path

import pytest

from regard.cli import run_command

SMALL = {
    "": ["--lengths", "4", "8", "16", "--width", "4", "--repeats", "1", "--window", "4"],
    "gradients": ["--length", "8", "--width", "4", "--draws", "1", "--radii", "0.5"],
    "scores": ["--widths", "4", "8", "--draws", "2"],
    "positions": ["--length", "16", "--width", "8", "--shifts", "3"],
    "norms": ["--mean-length", "4", "--width", "4", "--batches", "3", "--times", "1", "2"],
    "bandwidths": ["--sizes", "20", "50", "--bandwidth", "0.5", "--draws", "2"],
}
SHOWN = {
    "": "self-attention, as written",
    "gradients": "RNN, ρ = 0.5",
    "scores": "scaled dot",
    "positions": "rotary",
    "norms": "layer norm",
    "bandwidths": "fixed, 0.5",
}


@pytest.mark.parametrize("command", SMALL, ids=lambda name: name or "architectures")
def test_tables_a_record_and_a_page(command, tmp_path: Path, capsys):
    record, page = tmp_path / "new" / "x.json", tmp_path / "x.html"
    words = ["compare", *([command] if command else []), *SMALL[command]]
    assert run_command([*words, "--out", str(record), "--page", str(page)]) == 0
    said = capsys.readouterr()
    assert SHOWN[command] in said.out
    assert f"wrote {record}" in said.err
    assert f"wrote {page}" in said.err
    assert json.loads(record.read_text("utf-8"))["comparison"] == (command or "architectures")
    assert SHOWN[command] in page.read_text("utf-8")


def test_one_layer_alone(capsys):
    assert run_command(["compare", *SMALL[""], "--only", "convolution"]) == 0
    out = capsys.readouterr().out
    assert "convolution" in out
    assert "recurrence" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--lengths", "8"],
            "error: lengths must be three numbers or more, ascending from 2; got 8.",
        ),
        (["--device", "tpu9"], "error: device must be one of auto, cpu, cuda, mps; got 'tpu9'"),
        (
            ["bandwidths", "--sizes", "9", "3"],
            "error: sizes must be numbers from 2, ascending; got 9, 3.",
        ),
        (["bandwidths", "--bandwidth", "0"], "error: bandwidth must be above 0; got 0"),
        (["scores", "--draws", "1"], "error: draws must be at least 2; got 1."),
        (["norms", "--spreads", "99"], "error: spreads must be from 0 to below mean_length=32"),
    ],
)
def test_bad_numbers_are_one_line(words, message, capsys):
    assert run_command(["compare", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_record_that_cannot_be_written_is_one_line(tmp_path: Path, capsys):
    (tmp_path / "file").touch()
    words = ["compare", "scores", "--widths", "2", "--out", str(tmp_path / "file" / "x.json")]
    assert run_command(words) == 2
    assert "x.json must be a file that can be written" in capsys.readouterr().err
