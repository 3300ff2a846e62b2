"""Runs handed on: what is written, what is refused, and that nothing is left half done."""

import errno
import sys
import zipfile
from pathlib import Path

import pytest

from regard.errors import RunError, SettingError
from regard.export import export_run
from regard.inference import Predictor
from regard.runs import Run
from regard.tasks import TASKS, recipe_from_table
from regard.text.reading.points import Point

FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs_33c24e5"
FINISHED = sorted(path.stem for path in FIXTURES.glob("*.zip"))


@pytest.mark.parametrize("name", FINISHED)
def test_a_bundle_of_every_task_has_its_weights_and_says_what_it_is(runs, tmp_path, name):
    run, out = runs / name / "run", tmp_path / "a.regard"
    export_run(run, "bundle", out)
    own, bundled = Predictor.load(run), Predictor.load(out)
    assert bundled.recipe == own.recipe
    for (name_, weights), (bundled_name, bundled_weights) in zip(
        own.model.state_dict().items(), bundled.model.state_dict().items(), strict=True
    ):
        assert name_ == bundled_name
        assert weights.equal(bundled_weights)
    readme = zipfile.ZipFile(out).read("README.md").decode()
    assert readme.startswith(f"# A run of regard: {own.recipe.task}\n")
    parameters = sum(each.numel() for each in own.model.parameters())
    for expected in (f"{parameters:,} parameters", "- updates: 24", "- loss: ", "regard predict"):
        assert expected in readme


def test_the_readme_names_files_without_their_folders(tmp_path):
    folder, table = tmp_path / "of me", {"task": "regression", "model": {"is_learned": True}}
    table["data"] = {"train": [str(folder / "a.csv"), str(folder / "b.csv")], "valid": "sub/c.csv"}
    known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
    task = TASKS["regression"].task.learn(recipe_from_table(table), known)
    with Run.create(tmp_path / "run", table, "regression") as run:
        with run.new_tokenizer_folder() as tokenizer:
            task.save(tokenizer)
        run.finish(task.build_model().state_dict())
    export_run(tmp_path / "run", "bundle", tmp_path / "a.regard")
    readme = zipfile.ZipFile(tmp_path / "a.regard").read("README.md").decode()
    assert "- trained on: a.csv, b.csv\n- validated on: c.csv\n" in readme
    assert "of me" not in readme


@pytest.mark.parametrize(
    "occupy",
    [lambda out: out.write_text("mine"), Path.mkdir, lambda out: out.symlink_to("nowhere")],
)
def test_nothing_is_written_over(runs, tmp_path, occupy):
    occupy(tmp_path / "a.regard")
    with pytest.raises(SettingError, match="out must be a new path; there is something at"):
        export_run(runs / "tagging" / "run", "bundle", tmp_path / "a.regard")
    assert not (tmp_path / "a.regard").is_file() or (tmp_path / "a.regard").read_text() == "mine"


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


TOKEN_BY_TOKEN = r"model\.type = '\w+' reads a text token by token"
WRITES = r"task = '\w+' writes its answers token by token"
REFUSED = {
    "ctranslate2": {
        "translation-transformer": "CTranslate2 .* for model.values = 'embeddings'",
        "translation-rnn": "CTranslate2 .*and it is 'rnn_seq2seq' of translation",
        "generation": "CTranslate2 .*and it is 'rnn_seq2seq' of generation",
        "classification-transformer": "CTranslate2 .*and it is 'transformer' of classification",
    },
    "huggingface": {"translation-rnn": r"it is a recurrent translator \(model\.type = 'rnn_s"},
    "onnx": {
        "generation": r"model\.copy = true of rnn_seq2seq .*; train with --set model\.copy=false",
        "language-model-recurrent": r"model\.type = 'recurrent' is none of transformer, decoder",
        "translation-conv": r"model\.type = 'conv_seq2seq' is none of transformer, decoder",
        "translation-rnn": r"model\.coverage = true .* --set model\.coverage=false",
    },
    "torch": {
        "classification-recurrent": TOKEN_BY_TOKEN,
        "pair-matching-esim": r"model\.type = 'esim' is none of bag, convolutional, transformer",
        "question-answering-match": TOKEN_BY_TOKEN,
        "regression": r"model\.type = 'kernel_regression' is none of",
        "sentence-selection": r"model\.type = 'memory_network' is none of",
        "tagging": TOKEN_BY_TOKEN,
        "generation": WRITES,
        "language-model-recurrent": WRITES,
        "translation-conv": WRITES,
    },
}


@pytest.mark.parametrize(
    ("form", "name", "reason"),
    [(form, *each) for form, reasons in REFUSED.items() for each in reasons.items()],
)
def test_runs_that_a_form_cannot_hold_are_refused_by_their_option(
    runs, tmp_path, form, name, reason
):
    with pytest.raises(SettingError, match=f"got '{form}', but {reason}.*that hold it: --to bund"):
        export_run(runs / name / "run", form, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("onnx_graphs._PACKAGES", ("none_such",), r"got 'onnx' without none_such\. Install"),
        ("onnx_graphs._MOST_BYTES", 9, r"weights of [\d,]+ bytes are more than one \.onnx"),
    ],
)
def test_without_a_package_or_room_nothing_is_written(
    runs, tmp_path, monkeypatch, attribute, value, message
):
    monkeypatch.setattr(f"regard.export.{attribute}", value)
    with pytest.raises(SettingError, match=message):
        export_run(runs / "language-model" / "run", "onnx", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_without_ctranslate2_nothing_is_written(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(SettingError, match=r"Install it: pip install 'regard\[export\]'"):
        export_run(runs / "language-model" / "run", "ctranslate2", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("form", "module"),
    [("ctranslate2", "ctranslate2"), ("huggingface", "huggingface"), ("onnx", "graphs")],
)
def test_a_full_disk_leaves_nothing(runs, tmp_path, monkeypatch, form, module):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regard.export.onnx_graphs.serialised", lambda graph: b"")
    monkeypatch.setattr(f"regard.export.{module}.fill_file", full)
    with pytest.raises(RunError, match="must fit on its disk; got 'No space left on device'"):
        export_run(runs / "language-model" / "run", form, tmp_path / "out")
    assert not list(tmp_path.iterdir())
