"""Settings that differ, and curves on one page."""

import re

import pytest

from regard.comparison import page
from regard.errors import RunError, SettingError
from regard.runs import Run
from regard.runs.side_by_side import compare_runs


@pytest.fixture
def two(runs, tmp_path):
    runs.make(tmp_path / "a")
    runs.make(tmp_path / "b", dim=16, learning_rate=0.2, losses=(2.0, 1.0, 0.5))
    return tmp_path / "a", tmp_path / "b"


def test_only_settings_that_differ_are_told(two):
    found = compare_runs(two)
    assert found.names == ("a", "b")
    assert found.settings == {"model.model_dim": (8, 16), "training.learning_rate": (0.1, 0.2)}


def test_curves_are_those_of_metrics(two):
    found = compare_runs(two)
    points = {(c.run, c.split, c.figure): c.points for c in found.curves}
    assert points["b", "valid", "loss"] == ((10, 2.0), (20, 1.0), (30, 0.5))
    assert points["a", "train", "loss"] == ((10, 4.0), (20, 3.0))
    assert [key[1:] for key in points] == [
        *[("train", "loss")] * 2,
        *[("valid", "loss")] * 2,
        *[("valid", "bleu")] * 2,
    ]


def test_a_run_has_the_same_colour_in_every_plot(runs, two, tmp_path):
    with Run.create(tmp_path / "c", {"task": "translation"}, "translation") as run:
        run.append_metrics({"update": 1, "split": "valid", "loss": None, "accuracy": 3.0})
    report = compare_runs([*two, tmp_path / "c"]).report()
    assert {tuple(line.name for line in plot.lines) for plot in report.pictures} == {
        ("a", "b", "c")
    }
    drawn = page(report)
    assert "c (none)" in drawn
    assert [plot.title for plot in report.pictures][-1] == "Validation: bleu"


def test_of_two_kinds_of_model_what_only_one_knows_stands_apart(runs, tmp_path):
    runs.make(tmp_path / "a")
    runs.make(tmp_path / "b", type="decoder")
    with Run.open_for_training(tmp_path / "b") as run:
        run.change(20, {"model.context": (None, 5), "training.updates": (100, 50)})
    report = compare_runs([tmp_path / "a", tmp_path / "b"]).report()
    _, shared, single = report.tables
    assert [row[0] for row in shared.rows] == ["model.type", "training.updates"]
    assert single.rows == (("model.context", "–", "5"),)
    assert any("b, since update 20" in line for line in report.text)


def test_the_same_settings_are_said_to_be_the_same(runs, tmp_path):
    report = compare_runs([runs.make(tmp_path / "a"), runs.make(tmp_path / "b")]).report()
    assert report.tables[1].title == "No setting differs"


def test_names_without_the_folders_that_all_share(runs, tmp_path):
    paths = [runs.make(tmp_path / each / "run") for each in ("x", "y")]
    assert compare_runs(paths).names == ("x/run", "y/run")


def test_long_curves_are_thinned_to_means(runs, tmp_path):
    for name in "ab":
        runs.make(tmp_path / name)
        with Run.open_for_training(tmp_path / name) as run:
            for update in range(21, 1021):
                run.append_metrics({"update": update, "split": "train", "loss": update % 2})
    plot = compare_runs([tmp_path / "a", tmp_path / "b"]).report().pictures[0]
    assert len(plot.lines[0].points) <= 240
    assert plot.lines[0].points[-1][0] == 1020
    assert plot.lines[0].points[100][1] == pytest.approx(0.5, abs=0.2)


def test_the_page_asks_nobody_and_holds_names_as_text(runs, tmp_path):
    paths = [runs.make(tmp_path / name) for name in ("<b>", "c&d")]
    drawn = page(compare_runs(paths).report())
    assert "&lt;b&gt;" in drawn
    assert "<b>" not in drawn
    assert re.findall(r"(?:src|href)=\"(?!data:)", drawn) == []
    assert "http" not in drawn


def test_one_run_nine_runs_or_one_twice_are_refused(two, tmp_path):
    one, other = two
    with pytest.raises(SettingError, match="must be two to 8; got 1"):
        compare_runs([one])
    with pytest.raises(SettingError, match="must be two to 8; got 9"):
        compare_runs([tmp_path / str(number) for number in range(9)])
    with pytest.raises(SettingError, match="must be different ones"):
        compare_runs([one, other, one])
    with pytest.raises(RunError, match="must be a run folder; got nothing there"):
        compare_runs([one, tmp_path / "absent"])
