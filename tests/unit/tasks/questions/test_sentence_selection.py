"""Sentence selection by a memory network: which sentences are right, batches, bad input."""

import pytest
import torch

from regard.errors import DataError
from regard.tasks import recipe_from_table
from regard.tasks.questions.sentence_selection import SentenceSelection
from regard.text import BadLines
from regard.text.reading.questions import Answer, Question

TEXTS = [
    "Ann built the ship. It sank near Hull. Nobody was hurt.",
    "A king had a son. The son found a bird. He kept it.",
    "他来了。我走了。",
]


def question(text, context, *answers):
    spans = tuple(Answer(answer, context.index(answer)) for answer in answers)
    return Question(text, context, spans, where="q.jsonl:1")


QUESTIONS = [
    question("Who built the ship?", TEXTS[0], "Ann"),
    question("Where did it sink?", TEXTS[0], "near Hull", "hurt"),
    question("What did the son find?", TEXTS[1], "a bird"),
    question("谁走了？", TEXTS[2], "我"),
]


def job_of(num_hops=3, max_sentences=8, **data):
    model = {"type": "memory_network", "model_dim": 16, "num_hops": num_hops, "dropout": 0.0}
    table = {
        "task": "sentence_selection",
        "data": {"min_count": 1, **data},
        "model": model | {"max_sentences": max_sentences},
    }
    return SentenceSelection.learn(recipe_from_table(table), QUESTIONS)


def test_every_sentence_with_an_answer_is_right():
    job = job_of()
    batch = job.collate(job.encode(QUESTIONS))
    assert batch["counts"].tolist() == [3, 3, 3, 2]
    assert batch["right"].int().tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("num_hops", [1, 3])
def test_a_memory_network_learns_them_and_padding_changes_nothing(fitted, num_hops):
    job = job_of(num_hops)
    network, batch = fitted(job, QUESTIONS), job.collate(job.encode(QUESTIONS))
    answers = job.predict(network, batch)
    assert job.loss(network, batch)[1] == 4
    assert job.score(answers, QUESTIONS) == {"accuracy": 100.0}
    assert answers[3].sentence == "我走了。"
    assert TEXTS[2][answers[3].start : answers[3].end] == answers[3].sentence
    for example, answer in zip(QUESTIONS, answers, strict=True):
        (alone,) = job.predict(network, job.collate(job.encode([example])))
        assert alone.probability == pytest.approx(answer.probability, abs=1e-4)


def test_a_name_that_training_has_not_is_the_same_in_question_and_text(tmp_path):
    job = job_of()
    (one,) = job.encode([question("Where is Zork?", "Zork is here. Zark is not.", "here")])
    assert one["question"][2] in one["sentences"][0]
    assert one["question"][2] not in one["sentences"][1]
    assert max(one["question"]) < len(job.vocabulary)
    assert job.vocabulary.ids(["half of a pair \ud800"])[0] < len(job.vocabulary)
    job.save(tmp_path)
    again = SentenceSelection.load(job.recipe, tmp_path)
    assert again.vocabulary.ids(["zork"]) == [one["question"][2]]
    assert len(again.words) == len(job.words)


def test_with_overlap_it_finds_the_sentence_that_shares_rare_words(fitted, tmp_path):
    job = job_of(1, shared_words=True)
    network = fitted(job, QUESTIONS)
    with torch.no_grad():  # by the numbers alone
        for table in (network.match, network.mix, network.match_order):
            table.zero_()
    answers = job.predict(network, job.collate(job.encode(QUESTIONS)))
    assert job.score(answers, QUESTIONS)["accuracy"] >= 75
    for example, answer in zip(QUESTIONS, answers, strict=True):
        (alone,) = job.predict(network, job.collate(job.encode([example])))
        assert alone.probability == pytest.approx(answer.probability, abs=1e-4)
    job.save(tmp_path)
    again = SentenceSelection.load(job.recipe, tmp_path)
    assert torch.equal(again.encode(QUESTIONS)[0]["overlap"], job.encode(QUESTIONS)[0]["overlap"])


def test_baselines_and_tables():
    job = job_of()
    baselines = job.baselines(QUESTIONS, QUESTIONS)
    assert [answer.start for answer in baselines["first sentence"]] == [0, 0, 0, 0]
    for name in ("word overlap", "rare word overlap"):
        assert baselines[name][0].sentence == "Ann built the ship."
    assert job.score(baselines["first sentence"], QUESTIONS) == {"accuracy": 25.0}
    assert job.tables(baselines["first sentence"], QUESTIONS)[1].rows == (
        ("2", 0.0, 1),
        ("3", 100 / 3, 3),
    )


def test_a_text_of_too_many_sentences_is_left_out_in_training_and_else_an_error():
    job, counted = job_of(max_sentences=2), BadLines()
    assert len(job.encode(QUESTIONS, training=True, too_long=counted)) == 1
    assert counted.counts == {"sentences": 3}
    with pytest.raises(
        DataError, match=r"q\.jsonl:1: the text must have 1 to 2 sentences, .*got 3"
    ):
        job.encode(QUESTIONS)
