"""Measurements are taken in turn, summarised by the median, and recorded whole."""

import json

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


def test_a_record_holds_where_when_and_what(tmp_path):
    figure = measuring.Figure(what="Speed", ours="2 ×", beside="peer: 1", note="±1 %")
    path = measuring.write_record(
        "made_up",
        title="A test",
        figures=[figure],
        details={"samples": [1]},
        threads=[2, 1],
        rounds=5,
        folder=tmp_path,
    )
    record = json.loads(path.read_text("utf-8"))
    assert record["figures"] == [
        {"what": "Speed", "ours": "2 ×", "beside": "peer: 1", "note": "±1 %", "parts": []}
    ]
    assert set(record["machine"]) >= {"cpu", "cores", "flags", "memory_gib", "load_at_start"}
    assert record["versions"]["torch"]
    assert record["command"]
    assert (record["threads"], record["rounds"]) == ([1, 2], 5)
    assert record["details"] == {"samples": [1]}
    assert measuring.read_records(tmp_path) == [record]
    assert list(tmp_path.iterdir()) == [path]


def test_speed_on_another_processor_is_put_beside_the_new(tmp_path):
    def write(cpu, **options):
        machine = {"cpu": cpu, "flags": ["avx2"]}
        measuring.write_record(
            "made_up",
            title=cpu,
            figures=[],
            details=options.pop("details", {}),
            started_on=machine,
            folder=tmp_path,
            **options,
        )
        return [(each["name"], each["title"]) for each in measuring.read_records(tmp_path)]

    assert write("one", rounds=5) == [("made_up", "one")]
    both = [("made_up", "other"), ("second/made_up", "one")]
    assert write("other", rounds=5) == both
    assert write("other", rounds=5) == both
    assert write("one", rounds=5) == [("made_up", "one"), ("second/made_up", "other")]
    (tmp_path / "made_up.json").rename(tmp_path / "second" / "made_up.json")
    assert write("one", rounds=5) == [("made_up", "one")]  # an older one of the same kind
    assert write("other") == [("made_up", "other")]  # trainings are the same on both


@pytest.mark.parametrize(
    ("commit", "of_part", "holds"),
    [
        ("abc1234", "abc1234", True),
        ("abc1234", "0123456", False),
        ("abc1234+", "abc1234+", False),
        (None, None, False),
    ],
)
def test_what_was_measured_whole_of_one_commit_holds(tmp_path, monkeypatch, commit, of_part, holds):
    when = {"date": "2026-01-31", "commit": commit}
    monkeypatch.setattr(measuring, "occasion", lambda started_on: when)
    parts = {"rows": {"a": {"measured": {**when, "commit": of_part}}}}
    path = measuring.write_record("made_up", title="", figures=[], details=parts, folder=tmp_path)
    held = json.loads(path.read_text("utf-8"))["held"]
    assert held == (when if holds else None)


@pytest.fixture
def put_rows(tmp_path):
    """Writes rows into a record; the record."""

    def put(rows, recipes):
        path = measuring.write_rows(
            "made_up",
            rows,
            title="A test",
            recipes=recipes,
            figures=lambda name, row: [
                measuring.Figure(what=name, ours=row["score"], beside="0", note="")
            ],
            details={"threads": 1},
            folder=tmp_path,
        )
        return json.loads(path.read_text("utf-8"))

    return put


def test_a_row_is_added_to_the_earlier_rows_of_a_record(put_rows):
    recipes = {"a": {"epochs": 1}, "b": {"betas": (0.9, 0.98)}, "c": {}}
    record = put_rows({"b": {"score": "2"}}, recipes)
    assert record["details"]["not measured"] == ["a", "c"]
    record = put_rows({"a": {"score": "1"}}, recipes)
    assert [(figure["what"], figure["ours"]) for figure in record["figures"]] == [
        ("a", "1"),
        ("b", "2"),
    ]
    details = record["details"]
    assert details["not measured"] == ["c"]
    assert details["threads"] == 1
    assert details["rows"]["b"]["recipe"] == {"betas": [0.9, 0.98]}
    assert set(details["rows"]["b"]["measured"]) == {"date", "commit", "command", "machine"}


def test_a_row_of_another_recipe_does_not_stay_in_the_record(put_rows):
    put_rows({"a": {"score": "1"}, "b": {"score": "2"}}, {"a": {"epochs": 1}, "b": {}})
    record = put_rows({"b": {"score": "3"}}, {"a": {"epochs": 9}, "b": {}})
    assert record["details"]["not measured"] == ["a"]
    assert [figure["ours"] for figure in record["figures"]] == ["3"]


@pytest.fixture
def speed(monkeypatch, capsys):
    """Runs the command of a benchmark of two works; what was measured, recorded and printed."""

    def run(*options, peer=None):
        records, measured = [], []

        def measure(work, threads, rounds):
            measured.append((work, threads, rounds))
            line = measuring.Figure(what=work, ours="1", beside="2")
            yield f"{work}, {threads}", [1.0], [line]

        monkeypatch.setattr(
            measuring, "write_record", lambda *a, **options: records.append(options)
        )
        monkeypatch.setattr(measuring, "before_timing", lambda rounds, is_dry: {})
        monkeypatch.setattr("sys.argv", ["a benchmark", *options])
        measuring.measure_speed(
            "made_up",
            title="A test",
            about="What is measured.",
            rounds=5,
            side=lambda *words: list(words),
            measure=measure,
            works=["a", "b"],
            peer=peer,
            details={"lines": 3},
        )
        return measured, records, capsys.readouterr().out

    return run


def test_speed_is_measured_of_every_work_with_each_number_of_threads(speed):
    measured, (record,), _ = speed("--threads", "2", "1", "2", "--rounds", "7")
    assert measured == [("a", 1, 7), ("a", 2, 7), ("b", 1, 7), ("b", 2, 7)]
    assert [each.what for each in record["figures"]] == ["a", "a", "b", "b"]
    assert (record["threads"], record["rounds"]) == ([2, 1, 2], 7)
    assert record["details"] == {"lines": 3} | {
        f"{work}, {threads}": [1.0] for work, threads, _ in measured
    }


@pytest.mark.parametrize("options", [("--dry",), ("--only", "b")])
def test_what_is_tried_or_measured_in_part_leaves_no_record(speed, options):
    measured, records, _ = speed("--threads", "1", *options)
    assert measured[-1] == ("b", 1, 5)
    assert not records


def test_without_its_peer_speed_leaves_no_record(speed):
    _, records, printed = speed("--threads", "1", peer="no_such_package")
    assert not records
    assert "no_such_package is left out" in printed


def test_a_side_prints_what_it_measured_and_nothing_else(speed):
    measured, records, printed = speed("--side", "a", "3")
    assert (measured, records, json.loads(printed)) == ([], [], ["a", "3"])
