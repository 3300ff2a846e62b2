"""``regard bench``: a table, JSON, refusals, and what a stop leaves."""

import json
import re
from pathlib import Path

import pytest

from regard.inference import speed

pytestmark = pytest.mark.slow


def test_a_run_is_measured_on_its_own_texts(regard, run: Path) -> None:
    done = regard("bench", run, "--most", 4)
    assert done.code == 0, done
    rows = [row.split() for row in done.out.splitlines()]
    assert [row[:3] for row in rows if len(row) > 6] == [
        ["precision", "beam", "texts"],
        ["float32", "1", "4"],
        ["float32", "5", "4"],
    ]
    assert re.search(r", (1 thread|\d+ threads); regard", done.err)


def test_json_has_all_figures(regard, run: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("我爱中国。\n\n你好。\n", "utf-8")
    done = regard("bench", run, tmp_path / "texts.txt", "--beam-sizes", 2, "--json")
    said = json.loads(done.out)
    assert said["run"] == str(run)
    (figures,) = said["speeds"]
    assert figures["beam_size"] == 2
    assert figures["texts"] == 2
    assert figures["tokens_per_second"] > 0


def test_what_cannot_be_measured_is_refused(regard, run: Path, tmp_path: Path) -> None:
    refused = regard.refused
    assert "--most must be at least 1" in refused("bench", run, "--most", 0)
    assert "--beam-sizes must be at least 1" in refused("bench", run, "--beam-sizes", 0)
    said = refused("bench", run, "--precisions", "int1")
    assert 'Invalid value "int1" for --precisions. Choose from' in said
    assert "must be a run folder" in refused("bench", tmp_path)
    assert "missing.txt" in refused("bench", run, tmp_path / "missing.txt")


def test_what_was_measured_is_printed_when_it_is_stopped(regard, run: Path, monkeypatch) -> None:
    measured = speed._measured

    def stopped(answer, examples, precision, beam_size, progress):
        if beam_size != 1:
            raise KeyboardInterrupt
        return measured(answer, examples, precision, beam_size, progress)

    monkeypatch.setattr(speed, "_measured", stopped)
    done = regard("bench", run, "--most", 2, "--json")
    assert done.code == 130
    assert [each["beam_size"] for each in json.loads(done.out)["speeds"]] == [1]
    assert "stopped" in done.err
