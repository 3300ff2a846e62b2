"""Runs written down for CTranslate2: the folder, what is refused, and that nothing is left over."""

import builtins
import zipfile
from pathlib import Path

import ctranslate2
import pytest

from regard.errors import RunError, SettingError
from regard.export import export_run
from regard.inference import Predictor

FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs_33c24e5"
HELD = ("translation-bpe", "language-model")
OTHERS = {
    "translation-transformer": "has no place for model.values = 'embeddings'",
    "translation-rnn": "and it is 'rnn_seq2seq' of translation",
    "generation": "and it is 'rnn_seq2seq' of generation",
    "classification-transformer": "and it is 'transformer' of classification",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in (*HELD, *OTHERS):
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as packed:
            packed.extractall(folder / name)
    return folder


@pytest.mark.parametrize("name", HELD)
def test_the_folder_is_whole(runs, tmp_path, name):
    run, out = runs / name / "run", tmp_path / "out"
    export_run(run, "ctranslate2", out)
    assert ctranslate2.contains_model(str(out))
    assert "ctranslate2" in (out / "README.md").read_text("utf-8")
    files = [file for file in (out / "tokenizer").rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert file.read_bytes() == (run / file.relative_to(out)).read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_smaller_weights_say_nearly_the_same(runs, tmp_path):
    run = runs / "translation-bpe" / "run"
    sizes, scores = {}, {}
    pieces = Predictor.load(run).tokenizer.source.names[4:10]
    for precision in ("float32", "float16", "int8"):
        out = tmp_path / precision
        export_run(run, "ctranslate2", out, precision=precision)
        sizes[precision] = (out / "model.bin").stat().st_size
        translator = ctranslate2.Translator(str(out), intra_threads=1)
        assert precision != "int8" or translator.compute_type.startswith("int8")
        (scored,) = translator.score_batch([pieces], [pieces])
        scores[precision] = scored.log_probs
    assert max(sizes["int8"], sizes["float16"]) < sizes["float32"]
    assert scores["float16"] == pytest.approx(scores["float32"], abs=0.01)
    assert scores["int8"] == pytest.approx(scores["float32"], abs=0.5)
    assert scores["int8"] != pytest.approx(scores["float32"], abs=1e-4)


@pytest.mark.parametrize(("name", "reason"), OTHERS.items())
def test_runs_that_it_has_no_place_for_are_refused_with_the_reason(runs, tmp_path, name, reason):
    with pytest.raises(SettingError, match=f"got 'ctranslate2', but CTranslate2 .*{reason}"):
        export_run(runs / name / "run", "ctranslate2", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_precisions_that_it_has_not_are_refused(runs, tmp_path):
    run = runs / "language-model" / "run"
    with pytest.raises(SettingError, match="precision must be one of float16, float32, int8; got"):
        export_run(run, "ctranslate2", tmp_path / "out", precision="int4")
    with pytest.raises(SettingError, match="precision must be left out for bundle, whose weights"):
        export_run(run, "bundle", tmp_path / "out", precision="int8")
    assert not list(tmp_path.iterdir())


def test_without_ctranslate2_nothing_is_written(runs, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("ctranslate2"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingError, match=r"Install it: pip install 'regard\[export\]'"):
        export_run(runs / "language-model" / "run", "ctranslate2", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(runs, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("regard.export.ctranslate2_form.fill_file", full)
    with pytest.raises(RunError, match="must fit on its disk; got 'No space left on device'"):
        export_run(runs / "language-model" / "run", "ctranslate2", tmp_path / "out")
    assert not list(tmp_path.iterdir())
