"""Measurements are taken in turn, summarised by the median, and recorded whole."""

import json
from pathlib import Path

import pytest
from benchmarks import measuring


def test_sides_are_measured_in_turn():
    calls = []
    sides = {name: lambda name=name: calls.append(name) or len(calls) for name in "AB"}
    samples = measuring.alternate(sides, 3, report=lambda line: None)
    assert calls == ["A", "B", "A", "B", "A", "B"]
    assert samples == {"A": [1, 3, 5], "B": [2, 4, 6]}


def test_a_ratio_divides_within_a_round():
    # Both slow down in the second round: the ratio does not notice.
    ratio = measuring.paired_ratio([6.0, 3.0, 6.0], [2.0, 1.0, 2.0])
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 3.0, 3.0)
    assert ratio.relative == 0.0


def test_spread_is_half_the_range_over_the_median():
    assert measuring.Spread.of([9.0, 10.0, 13.0]).relative == pytest.approx(0.2)


def test_a_record_holds_where_when_and_what(tmp_path: Path):
    figure = measuring.Figure(what="Speed", ours="2 ×", beside="peer: 1", note="±1 %")
    path = measuring.write_record(
        "made_up", title="A test", figures=[figure], details={"samples": [1]}, folder=tmp_path
    )
    record = json.loads(path.read_text("utf-8"))
    assert record["figures"] == [
        {"what": "Speed", "ours": "2 ×", "beside": "peer: 1", "note": "±1 %"}
    ]
    assert set(record["machine"]) >= {"cpu", "cores", "flags", "memory_gib", "load_at_start"}
    assert record["versions"]["torch"]
    assert record["details"] == {"samples": [1]}
    assert measuring.read_records(tmp_path) == [record]
    assert list(tmp_path.iterdir()) == [path]


def test_children_get_the_threads_asked_for():
    assert measuring.thread_environment(2)["OMP_NUM_THREADS"] == "2"


def test_a_package_that_is_absent_has_no_version():
    assert measuring.versions("no-such-package")["no-such-package"] is None
