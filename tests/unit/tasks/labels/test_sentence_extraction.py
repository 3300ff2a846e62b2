"""Sentence extraction: labels made from summaries, what is read, learned and taken out."""

import json
import random

import pytest
import torch
from tests.unit.tasks.conftest import recipe_of

from regard.errors import DataError, SettingError
from regard.tasks.labels.sentence_extraction import SentenceExtraction, best_sentences
from regard.tasks.sequences.generation import DocumentExample
from regard.text import BOS_ID, PAD_ID, BadLines

TALE = "Rain fell. The king had a son. The son ran to a mill. It was old."
ONE = DocumentExample(TALE, "", ("A king had a son. He ran to a mill.",), "a:1")


def recipe(folder=None, **data):
    return recipe_of("sentence_extraction", "recurrent", folder, data=data)


def learned(**data):
    return SentenceExtraction.learn(recipe(**data), [ONE])


def test_the_best_sentences_are_found_one_after_the_other():
    parts = ["e f", "a b", "c d", "a b c", "e"]
    assert best_sentences(parts, "a b c d", 1) == [3]
    assert best_sentences(parts, "a b c d", 3) == [2, 3]  # a third one would only add words
    assert best_sentences(parts, "c d e f", 3) == [0, 2]
    assert best_sentences(parts, "nothing", 2) == [0]  # one at least
    assert best_sentences(["国王走了。", "天下雨。"], "下雨了", 1) == [1]


def test_as_many_are_taken_out_as_summaries_have():
    assert learned().sentences == 2
    assert learned(sentences=3).sentences == 3
    assert learned().describe()[1] == "2 sentences of each document taken out"


def test_every_sentence_has_a_begin_and_a_label():
    task = learned()
    (encoded,) = task.encode([ONE], training=True)
    assert [encoded["ids"][position] for position in encoded["positions"]] == [BOS_ID] * 4
    assert encoded["ids"].count(BOS_ID) == 4
    assert encoded["tags"] == [0, 1, 1, 0]
    assert task.encode([DocumentExample(TALE, "", (), "")])[0]["tags"] == [0] * 4


def test_a_long_document_is_read_to_its_limit_with_a_warning():
    task, counted = learned(max_length=8), BadLines()
    (encoded,) = task.encode([ONE], training=True, too_long=counted)
    assert len(encoded["ids"]) == 8
    assert encoded["sentences"] == ("Rain fell.", "The king had a son.")
    assert counted.counts == {"document cut": 1}


def test_padding_changes_nothing():
    task = learned()
    torch.manual_seed(0)
    model = task.build_model().eval()
    short = DocumentExample("Rain fell. It was old.", "", ("Rain fell.",), "")
    singles = [task.predict(model, task.collate(task.encode([one])))[0] for one in (ONE, short)]
    batch = task.collate(task.encode([ONE, short]))
    assert batch["ids"][1, -1] == PAD_ID
    batched = task.predict(model, batch)
    for single, padded in zip(singles, batched, strict=True):
        assert single.summary == padded.summary
        assert single.probabilities == pytest.approx(padded.probabilities, abs=1e-5)
    losses = [task.loss(model, task.collate(task.encode([one]))) for one in (ONE, short)]
    total, terms = task.loss(model, batch)
    assert terms == 6
    assert total.item() == pytest.approx(sum(loss.item() for loss, _ in losses), rel=1e-5)


def test_it_learns_which_sentences_are_taken_out(fitted):
    rng = random.Random(0)
    words = ["mill", "river", "king", "son", "garden", "hill"]

    def document(number):
        sentences = [f"We {rng.choice(words)} the {rng.choice(words)} {n}." for n in range(4)]
        result = f"Results: {rng.choice(words)} {number}."
        sentences.insert(rng.randrange(5), result)
        return DocumentExample(" ".join(sentences), "", (result,), f"a:{number}")

    documents, new = ([document(number) for number in range(n, n + 40)] for n in (0, 100))
    task = SentenceExtraction.learn(recipe(), documents)
    answers = task.predict(fitted(task, documents, 30), task.collate(task.encode(new)))
    assert task.score(answers, new)["rouge_l"] > 95
    baseline = task.baselines(documents, new)["the first sentence"]
    assert task.score(baseline, new)["rouge_l"] < 60
    (table,) = task.tables(answers, new)
    assert table.rows[1][1] == pytest.approx(100)


def test_its_questions_and_what_it_refuses(tmp_path):
    task = learned()
    assert task.request({"document": TALE}, "a").text == TALE
    assert task.request(TALE, "a").text == TALE
    with pytest.raises(
        DataError, match="a: expected the key 'document' or 'context'; found 'text'"
    ):
        task.request({"text": TALE}, "a")
    with pytest.raises(SettingError, match="document and summary must be different columns"):
        recipe(document=2)
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"document": TALE, "summaries": ["One.", "Two."]}), "utf-8")
    (read,) = SentenceExtraction.read(recipe(tmp_path, train="a.jsonl"), "train")
    assert read.answers == ("One.", "Two.")
