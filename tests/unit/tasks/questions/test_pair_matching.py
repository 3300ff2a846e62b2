"""Pair matching: pairs of questions and passages, models of two rows and of one, bad input."""

import json

import pytest
import torch
from tests.unit.tasks.conftest import recipe_of

from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.inference.evaluation.comparison import Ensemble
from regard.models import Esim
from regard.tasks.labels import baselines
from regard.tasks.labels.baselines import OVERLAP, OverlapClassifier
from regard.tasks.questions.pair_matching import LabelledPair, PairMatching
from regard.tasks.questions.question_task import MATCH, OTHER
from regard.text import BadLines

SHIP, KING = "Ann built the ship in 1725.", "The king had a son and a golden bird."
PAIRS = [
    LabelledPair("Who built the ship?", SHIP, MATCH, "q:1"),
    LabelledPair("Who built the ship?", KING, OTHER, "q:1"),
    LabelledPair("What had the king?", KING, MATCH, "q:2"),
    LabelledPair("What had the king?", SHIP, OTHER, "q:2"),
]


def recipe(model="esim", folder=None, **data):
    return recipe_of("pair_matching", model, folder, data=data)


def squad(folder, *articles):
    def article(texts):
        qas = [
            {"id": t, "question": f"{t}?", "answers": [{"text": t, "answer_start": 0}]}
            for t in texts
        ]
        return [{"context": t, "qas": [qa]} for t, qa in zip(texts, qas, strict=True)]

    data = [{"title": str(n), "paragraphs": article(texts)} for n, texts in enumerate(articles)]
    (folder / "q.json").write_text(json.dumps({"data": data}), encoding="utf-8")


def test_a_question_stands_with_its_passage_and_with_another_of_the_article(tmp_path):
    squad(tmp_path, ["aa", "bb", "cc"], ["dd", "ee"])
    examples = PairMatching.read(recipe(folder=tmp_path, train="q.json"), "train")
    assert len(examples) == 10
    for match, mismatch in zip(examples[::2], examples[1::2], strict=True):
        assert (match.first, match.label, mismatch.label) == (f"{match.second}?", MATCH, OTHER)
        assert mismatch.first == match.first
        assert mismatch.second != match.second
        assert (match.second in "ddee") == (mismatch.second in "ddee")


def test_an_article_of_one_passage_is_named_or_left_out(tmp_path):
    squad(tmp_path, ["aa"], ["dd", "ee"])
    with pytest.raises(DataError, match="question aa: its article must have another passage"):
        PairMatching.read(recipe(folder=tmp_path, train="q.json"), "train")
    bad = BadLines()
    skipping = recipe(folder=tmp_path, train="q.json", on_bad_line="skip")
    assert len(PairMatching.read(skipping, "train", bad_lines=bad)) == 4
    assert bad.counts == {"pairs": 1}


def test_labelled_pairs_of_tables(tmp_path):
    (tmp_path / "p.tsv").write_text("a\tb\t1\nc\td\t0\n", encoding="utf-8")
    first, _ = PairMatching.read(recipe(folder=tmp_path, train="p.tsv"), "train")
    assert (first.first, first.second, first.label) == ("a", "b", "1")
    with pytest.raises(SettingError, match="first, second and label must be different columns"):
        recipe(first=2)


def test_models_answer_together_by_their_mean():
    jobs = [PairMatching.learn(recipe(model), PAIRS) for model in ("esim", "transformer")]
    members = [Predictor(job.build_model(), job) for job in jobs]
    each = [member.answers(PAIRS) for member in members]
    for pair in zip(Ensemble(members).answers(PAIRS), *each, strict=True):
        both, one, other = (answer.probabilities[MATCH] for answer in pair)
        assert both == pytest.approx((one + other) / 2)


@pytest.mark.parametrize("model", ["esim", "match", "transformer"])
def test_each_model_learns_four_pairs(fitted, model):
    job = PairMatching.learn(recipe(model), PAIRS)
    network, batch = fitted(job, PAIRS), job.collate(job.encode(PAIRS))
    answers = job.predict(network, batch)
    assert job.loss(network, batch)[1] == 4
    assert job.score(answers, PAIRS) == {"accuracy": 100.0}
    for pair, answer in zip(PAIRS, answers, strict=True):
        (alone,) = job.predict(network, job.collate(job.encode([pair])))
        assert alone.probabilities == pytest.approx(answer.probabilities, abs=1e-4)


@pytest.mark.parametrize("model", ["esim", "match", "transformer"])
def test_each_model_adds_what_overlap_says(fitted, model, tmp_path):
    job = PairMatching.learn(recipe(model, shared_words=True), PAIRS)
    network = fitted(job, PAIRS)
    batch = job.collate(job.encode(PAIRS))
    answers = job.predict(network, batch)
    assert job.score(answers, PAIRS) == {"accuracy": 100.0}
    without = job.predict(network, batch | {"overlap": torch.zeros_like(batch["overlap"])})
    assert [one.probabilities for one in without] != [one.probabilities for one in answers]
    job.save(tmp_path)
    again = PairMatching.load(job.recipe, tmp_path)
    assert torch.equal(again.collate(again.encode(PAIRS))["overlap"], batch["overlap"])


def test_a_model_from_outside_that_reads_no_overlap_is_named(monkeypatch):
    monkeypatch.setattr(Esim, "reads_overlap", False)
    with pytest.raises(
        SettingError, match=r"data\.shared_words must be false where .*got true, 'esim'"
    ):
        PairMatching.learn(recipe(shared_words=True), PAIRS)


def test_regression_on_overlap_parts_what_shares_words():
    job = PairMatching.learn(recipe(), PAIRS)
    predictions = job.baselines(PAIRS, PAIRS)
    assert job.score(predictions[OVERLAP], PAIRS) == {"accuracy": 100.0}
    assert job.score(predictions[f"always {MATCH}"], PAIRS) == {"accuracy": 50.0}


def test_bad_requests_and_labels():
    job = PairMatching.learn(recipe(), PAIRS)
    assert job.request("a\tb", "x:1").second == "b"
    with pytest.raises(DataError, match="x:1: second must hold something to read; got ''"):
        job.request("a", "x:1")
    with pytest.raises(DataError, match=r"q:9: label must be one met in training \(match, other\)"):
        job.encode([LabelledPair("a", "b", "maybe", "q:9")])
    with pytest.raises(DataError, match="at least two different labels"):
        PairMatching.learn(recipe(), PAIRS[:1])


def test_regression_on_overlap_sees_both_labels_of_files_that_alternate_them(monkeypatch):
    monkeypatch.setattr(baselines, "_ENOUGH", 20)
    pairs = [
        (f"w{i}", f"the w{i} ran" if i % 2 else "a dog sat", "match" if i % 2 else "other")
        for i in range(80)
    ]
    overlap = OverlapClassifier(pairs)
    assert overlap.labels([pair[:2] for pair in pairs]) == [label for *_, label in pairs]
