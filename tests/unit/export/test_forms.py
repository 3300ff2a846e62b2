"""Runs handed on: what is written, what is refused, and that nothing is left half done."""

import zipfile
from pathlib import Path

import pytest

from regard.errors import RunError, SettingError
from regard.export import FORMS, ExportForm, export_run
from regard.inference import Predictor

FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs_33c24e5"
FINISHED = sorted(path.stem for path in FIXTURES.glob("*.zip"))


@pytest.mark.parametrize("name", FINISHED)
def test_a_bundle_of_every_task_has_its_weights_and_says_what_it_is(runs, tmp_path, name):
    run, out = runs / name / "run", tmp_path / "a.regard"
    export_run(run, "bundle", out)
    own, bundled = Predictor.load(run), Predictor.load(out)
    assert bundled.recipe == own.recipe
    for (one, weights), (other, same) in zip(
        own.model.state_dict().items(), bundled.model.state_dict().items(), strict=True
    ):
        assert one == other
        assert weights.equal(same)
    readme = zipfile.ZipFile(out).read("README.md").decode()
    assert readme.startswith(f"# A run of regard: {own.recipe.task}\n")
    parameters = sum(each.numel() for each in own.model.parameters())
    for said in (f"{parameters:,} parameters", "- updates: 24", "- loss: ", "regard predict"):
        assert said in readme


def test_it_translates_alike(runs, tmp_path):
    run, out = runs / "translation-rnn" / "run", tmp_path / "a.regard"
    export_run(run, "bundle", out)
    sources = ["我爱中国。", "你好"]
    assert Predictor.load(out).translate(sources) == Predictor.load(run).translate(sources)


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_nothing_is_written_over(runs, tmp_path, what):
    out = tmp_path / "a.regard"
    if what == "file":
        out.write_text("mine")
    elif what == "folder":
        out.mkdir()
    else:
        out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SettingError, match="out must be a new path; there is something at"):
        export_run(runs / "tagging" / "run", "bundle", out)
    if what == "file":
        assert out.read_text() == "mine"


def test_bad_requests_are_refused_before_anything_is_written(runs, tmp_path):
    run, out = runs / "tagging" / "run", tmp_path / "a.regard"
    with pytest.raises(SettingError, match="form must be one of bundle"):
        export_run(run, "pickle", out)
    with pytest.raises(SettingError, match="out must be in a folder that exists"):
        export_run(run, "bundle", tmp_path / "new" / "a.regard")
    with pytest.raises(RunError, match="must be a run folder; got nothing there"):
        export_run(tmp_path / "none", "bundle", out)
    with pytest.raises(RunError, match="must have finished training; it has not"):
        export_run(runs / "generation" / "begun", "bundle", out)
    assert not list(tmp_path.iterdir())


def test_a_form_that_cannot_hold_a_run_says_why(runs, tmp_path, monkeypatch):
    class Small(ExportForm):
        purpose = "a trial"

        def usage(self, predictor, name):
            raise AssertionError("it has refused")

        def refuse(self, predictor):
            return f"it has no place for {predictor.recipe.task}"

        def write(self, run, predictor, out, *, readme):
            raise AssertionError("it has refused")

    monkeypatch.setitem(FORMS, "small", Small())
    message = r"but it has no place for tagging\. Forms that hold it: --to bundle\."
    with pytest.raises(SettingError, match=message):
        export_run(runs / "tagging" / "run", "small", tmp_path / "out")
