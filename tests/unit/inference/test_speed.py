"""How fast runs answer: what is counted, of which texts, in which ways."""

import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.errors import DataError
from regard.inference import Predictor
from regard.inference.speed import (
    MOST_ALONE,
    Speed,
    beam_sizes_of,
    speeds,
    steps,
    texts_of,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs_33c24e5"
TEXTS = FIXTURES / "texts"
# Of every kind: what is asked, and the beams that are measured.
ASKED = {
    "classification-bag": ("ask-both.txt", [None]),
    "language-model": ("ask-begun.txt", [1, 5]),
    "language-model-recurrent": ("ask-begun.txt", [1, 5]),
    "masked-language-model": ("ask-masked.txt", [None]),
    "pair-matching-esim": ("ask-pairs.jsonl", [None]),
    "question-answering-transformer": ("ask-questions.jsonl", [None]),
    "regression": ("ask-flats.txt", [None]),
    "tagging": ("ask-words.txt", [None]),
    "translation-transformer": ("ask-chinese.txt", [1, 5]),
}


def load(name, folder, monkeypatch):
    """A small run, used where its texts are."""
    with zipfile.ZipFile(FIXTURES / f"{name}.zip") as packed:
        packed.extractall(folder)
    monkeypatch.chdir(TEXTS)
    return Predictor.load(folder / "run")


@pytest.mark.parametrize("name", ASKED)
def test_runs_of_every_kind_are_measured(tmp_path, monkeypatch, name):
    predictor = load(name, tmp_path, monkeypatch)
    file, beams = ASKED[name]
    texts = texts_of(predictor, TEXTS / file, most=2)
    assert beam_sizes_of(predictor) == beams
    counts = []
    found = list(
        speeds(
            lambda precision: predictor,
            texts,
            precisions=["float32"],
            beam_sizes=beams,
            progress=counts.append,
        )
    )
    assert [each.beam_size for each in found] == beams
    assert sum(counts) == steps(texts, len(beams)) == 2 * len(texts) * len(beams)
    for each in found:
        assert each.texts == len(texts)
        assert each.tokens >= len(texts)
        assert 0 < each.p50 <= each.p95
        assert each.texts_per_second == len(texts) / each.seconds
        assert each.to_dict()["tokens_per_second"] == each.tokens / each.seconds
        assert each.peak_mib is None or each.peak_mib > 50


def test_tokens_are_those_that_are_written(tmp_path, monkeypatch):
    predictor = load("translation-transformer", tmp_path, monkeypatch)
    texts = texts_of(predictor, None, most=5)
    (found,) = speeds(
        lambda precision: predictor,
        texts,
        precisions=["float32"],
        beam_sizes=[1],
        progress=lambda count: None,
    )
    written = predictor.translate([pair.source for pair in texts], beam_size=1)
    assert found.tokens == sum(len(each[0].tokens) + 1 for each in written)


def test_each_precision_is_loaded_and_measured(monkeypatch):
    asked, warmed = [], []

    def opened(precision):
        asked.append(precision)
        return SimpleNamespace(warm_up=lambda: warmed.append(precision))

    def answer(examples, progress):
        time.sleep(0.001 * len(examples))
        progress(len(examples))
        return 3 * len(examples)

    monkeypatch.setattr("regard.inference.speed._answering", lambda predictor, beam_size: answer)
    texts = ["a"] * (MOST_ALONE + 7)
    found = list(
        speeds(
            opened,
            texts,
            precisions=["float32", "int8"],
            beam_sizes=[None],
            progress=lambda count: None,
        )
    )
    assert asked == [each.precision for each in found] == ["float32", "int8"]
    assert warmed == asked
    assert all(each.tokens == 3 * len(texts) for each in found)
    assert all(each.seconds >= 0.001 * len(texts) and each.p50 >= 1 for each in found)
    assert steps(texts, 2) == 2 * (len(texts) + MOST_ALONE)


def test_a_runs_own_texts_are_measured_with_while_they_are_there(tmp_path, monkeypatch):
    predictor = load("language-model", tmp_path, monkeypatch)
    assert texts_of(predictor, None, most=2) == [
        line.strip() for line in (TEXTS / "book.txt").read_text("utf-8").splitlines()[:2]
    ]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"data\.test or data\.valid must be there .* bench RUN FI"):
        texts_of(predictor, None, most=2)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"empty\.txt must hold texts to measure with; got none"):
        texts_of(predictor, tmp_path / "empty.txt", most=2)


def test_speeds_as_plain_data():
    speed = Speed("float32", 5, 10, 80, 2.0, 1.5, 2.5, None)
    assert speed.to_dict() == {
        "precision": "float32",
        "beam_size": 5,
        "texts": 10,
        "tokens": 80,
        "seconds": 2.0,
        "p50": 1.5,
        "p95": 2.5,
        "peak_mib": None,
        "texts_per_second": 5.0,
        "tokens_per_second": 40.0,
    }
