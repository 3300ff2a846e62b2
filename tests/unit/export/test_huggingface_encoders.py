"""Encoders in transformers: the same logits there, and back here."""

import re

import pytest
import torch
import transformers
from tests.unit.export.random_runs import (
    PAIRS,
    classifier,
    masked_model,
    opened,
    tagger,
)

from regard.export import export_run
from regard.export.huggingface import HuggingFace
from regard.interop import load_checkpoint

pytestmark = pytest.mark.slow


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model", "asks"),
    [
        ({}, {}, True),
        ({"type": "characters"}, {"num_segments": 0, "norm_eps": 1e-3}, False),
        ({"type": "unigram"}, {"num_segments": 1}, False),
    ],
)
def test_a_masked_language_model_guesses_alike(tmp_path, tokenizer, model, asks):
    data = {"next_sentence": asks}
    predictor = masked_model(tmp_path / "run", data=data, tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    kind = transformers.AutoModelForPreTraining
    theirs, told = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(told.values())
    theirs.eval().save_pretrained(tmp_path / "again")
    again = kind.from_pretrained(tmp_path / "again").eval()
    back = load_checkpoint(tmp_path / "again").model
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert ("token_type_ids" in cut("a")) == asks
    task, ours = predictor.task, predictor.model
    for text in ("I love [MASK].", "This is [MASK] [MASK]! </s>", "[MASK]"):
        (encoded,) = task.encode([task.request(text, "here")])
        batch, asked = task.collate([encoded]), cut(text, return_tensors="pt")
        assert asked["input_ids"].tolist() == batch["ids"].tolist()
        with torch.no_grad():
            states = ours(batch["ids"], batch["lengths"])
            found = [each(**asked) for each in (theirs, again)]
            words = [each.prediction_logits for each in found]
            words.append(back.project(back(batch["ids"], batch["lengths"])))
            for each in words:
                torch.testing.assert_close(each, ours.project(states), atol=1e-4, rtol=0)
            for each in found:
                follows = each.seq_relationship_logits
                torch.testing.assert_close(follows, ours.follows(states), atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"type": "bpe", "may_shrink": True}, {}),
        ({"type": "characters", "begin": True}, {"positions": "sinusoidal", "num_segments": 0}),
        (None, {"num_segments": 0}),
    ],
)
def test_a_tagger_tags_alike(tmp_path, tokenizer, model):
    predictor = tagger(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForTokenClassification")
    theirs.save_pretrained(tmp_path / "again")
    again = opened(tmp_path / "again", "AutoModelForTokenClassification")
    assert theirs.config.id2label == dict(enumerate(predictor.task.tags))
    backs = [load_checkpoint(tmp_path / name) for name in ("out", "again")]
    for _, text in PAIRS:
        batch = predictor.task.collate(predictor.task.encode([predictor.task.request(text, "")]))
        ids, lengths = (
            (batch["words"], batch["lengths"])
            if batch["pieces"] is None
            else (batch["pieces"]["ids"], batch["pieces"]["lengths"])
        )
        if tokenizer is not None:
            cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
            assert cut(text)["input_ids"] == ids[0].tolist()
        with torch.no_grad():
            wanted = predictor.model(ids, lengths)
            found = [each(input_ids=ids).logits for each in (theirs, again)]
            for back in backs:
                assert not back.absent
                assert not back.unused
                found.append(back.model(ids, lengths))
        for each in found:
            torch.testing.assert_close(each, wanted, atol=1e-4, rtol=0)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("tokenizer", "model"),
    [
        ({"begin": True}, {}),
        ({}, {"positions": "sinusoidal"}),
        ({"begin": True}, {"num_segments": 0}),
    ],
)
def test_a_classifier_classifies_alike(tmp_path, tokenizer, model):
    predictor = classifier(tmp_path / "run", tokenizer=tokenizer, **model)
    export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    theirs = opened(tmp_path / "out", "AutoModelForSequenceClassification")
    theirs.save_pretrained(tmp_path / "again")
    again = opened(tmp_path / "again", "AutoModelForSequenceClassification")
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = cut([text for _, text in PAIRS], padding=True, return_tensors="pt")
    found = predictor.predict([text for _, text in PAIRS])
    back = load_checkpoint(tmp_path / "again")
    assert not back.absent
    assert not back.unused
    with torch.no_grad():
        for logits in (
            theirs(**batch).logits,
            again(**batch).logits,
            back.model(batch["input_ids"], batch["attention_mask"].sum(1)),
        ):
            for row, answer in zip(logits.softmax(-1).tolist(), found, strict=True):
                named = {theirs.config.id2label[place]: share for place, share in enumerate(row)}
                assert named == pytest.approx(answer.probabilities, abs=1e-4)


@pytest.mark.parametrize(
    ("make", "settings", "reason"),
    [
        (masked_model, {"positions": "rotary"}, "model.positions is 'rotary', and"),
        (masked_model, {"positions": "sinusoidal"}, "model.positions is 'sinusoidal', and"),
        (masked_model, {"norm": "pre"}, "model.norm is 'pre', and"),
        (masked_model, {"norm_kind": "rms"}, "model.norm_kind is 'rms', and"),
        (masked_model, {"activation": "relu"}, "model.activation is 'relu', and"),
        (tagger, {"head": {"crf": True}}, "head.crf is true, and"),
        (tagger, {"parts": "bag"}, "model.parts is 'bag', and"),
        (classifier, {"head": {"pooling": "mean"}}, "head.pooling is 'mean', and"),
        (classifier, {"head": {"pooler": False}}, "head.pooler is false, and"),
    ],
)
def test_an_encoder_that_bert_does_not_hold_is_refused(make, settings, reason):
    assert re.match(reason, HuggingFace().refuse(make(None, **settings)))
