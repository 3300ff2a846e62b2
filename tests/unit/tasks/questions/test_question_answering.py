"""Extractive question answering: windows, spans, no answer, baselines, bad input."""

from dataclasses import replace

import pytest
import torch
from tests.unit.tasks.conftest import recipe_of

from regard.errors import DataError, SettingError
from regard.tasks.questions.question_answering import QuestionAnswering, SpanAnswer
from regard.tasks.sentence_baselines import SlidingWindow, sentences_of
from regard.text.reading.questions import Answer, Question

CONTEXT = "Ann Lee built the ship in 1725.  It sank near Hull, and nobody was hurt at all."
ASKED = {"Who built the ship?": "Ann Lee", "When was the ship built?": "1725"}


def question(text, *answers, context=CONTEXT):
    spans = tuple(Answer(answer, context.index(answer)) for answer in answers)
    return Question(text, context, spans, where="q.json: question 1")


QUESTIONS = [question(text, answer) for text, answer in ASKED.items()]


def recipe(model="match", head=None, **data):
    data = {"max_length": 64, "stride": 32, "max_question": 16} | data
    return recipe_of("question_answering", model, data=data, head=head)


def job_of(*examples, **settings):
    return QuestionAnswering.learn(recipe(**settings), examples or QUESTIONS)


class Fixed(torch.nn.Module):
    """Logits that wish for given tokens as the two ends, and for none by ``none``."""

    def __init__(self, first, last, none=-9.0):
        super().__init__()
        self.first, self.last, self.none = first, last, none

    def forward(self, ids, lengths, **reading):
        start, end = (ids == self.first).float() * 5, (ids == self.last).float() * 5
        start[:, 0] = end[:, 0] = self.none
        return start, end


@pytest.mark.parametrize("model", ["match", "recurrent", "transformer"])
def test_the_offsets_of_an_answer_are_those_of_its_tokens(model):
    job = job_of(model=model)
    encoded = job.encode(QUESTIONS)
    batch = job.collate(encoded)
    for row, example in enumerate(QUESTIONS):
        first = batch["ids"][row, batch["starts"][row] : batch["ends"][row] + 1].tolist()
        assert job.tokenizer.decode(first) == example.answers[0].text
        inside = batch["ids"][row][batch["allowed"][row]].tolist()
        assert inside == job.tokenizer.encode(example.context)


def told_as_written(job):
    """The words of question and text marked as occurring in the other, in order."""
    pairs = job.collate(job.encode(QUESTIONS[:1]))
    positions = pairs["reading"]["features"][0, :, 0].nonzero().flatten().tolist()
    return [job.tokenizer.decode([pairs["ids"][0, position].item()]) for position in positions]


def test_tokens_have_features_of_the_words_shared_with_the_other_text():
    of_context, of_question = ["built", "the", "ship"], ["built", "the", "ship"]
    assert told_as_written(job_of(model="match")) == of_context
    assert told_as_written(job_of(model="transformer")) == of_question + of_context
    batch = job_of(model="match").collate(job_of(model="match").encode(QUESTIONS[:1]))
    assert ((batch["reading"]["features"][0, :, -1] > 0) == batch["allowed"][0]).all()


def test_an_answer_is_the_very_text_of_its_context_with_its_position():
    job = job_of()
    ids = job.tokenizer.encode(CONTEXT)
    words = job.tokenizer.pieces(CONTEXT)
    first, last = (next(i for i, p in enumerate(words) if p.text == w) for w in ("1725", "sank"))
    (prediction,) = job.predict(
        Fixed(ids[first], ids[last]), job.collate(job.encode(QUESTIONS[:1]))
    )
    assert prediction.answer == "1725.  It sank"  # both spaces, as the text has them
    assert CONTEXT[prediction.start : prediction.end] == prediction.answer
    assert prediction.text() == "1725. It sank"
    assert prediction.to_dict()["start"] == CONTEXT.index("1725")


def test_a_long_text_is_read_in_windows_and_its_best_answer_is_taken():
    context = " ".join(["no word of it"] * 40) + " but Ann at the end."
    example = question("Who?", "Ann", context=context)
    job = job_of(example, *QUESTIONS, max_length=24, stride=12)
    (encoded,) = job.encode([example])
    batch = job.collate([encoded])
    assert len(batch["owners"]) > 5
    with_answer = (batch["starts"] > 0).nonzero().flatten().tolist()
    assert 0 < len(with_answer) < len(batch["owners"])
    for row in with_answer:
        ids = batch["ids"][row, batch["starts"][row] : batch["ends"][row] + 1].tolist()
        assert job.tokenizer.decode(ids) == "Ann"
    (answer_id,) = job.tokenizer.encode("Ann")
    (prediction,) = job.predict(Fixed(answer_id, answer_id), batch)
    assert (prediction.answer, prediction.start) == ("Ann", context.index("Ann"))
    read = {token for window in job._windows(encoded) for token in window}
    assert read == set(range(len(encoded["ids"])))
    assert job.lengths([encoded])[0] == sum(
        len(window) + len(encoded["other"]) + 3 for window in job._windows(encoded)
    )


def test_no_answer_is_one_only_where_training_had_it():
    without = replace(QUESTIONS[0], answers=())
    may, must = job_of(*QUESTIONS, without), job_of()
    for job, answer in ((may, ""), (must, "Ann")):
        (answer_id,) = job.tokenizer.encode("Ann")
        batch = job.collate(job.encode(QUESTIONS[:1]))
        assert job.predict(Fixed(answer_id, answer_id, none=6.0), batch)[0].answer == answer
    batch = may.collate(may.encode([without]))
    assert (batch["starts"].item(), batch["ends"].item()) == (0, 0)
    assert "some questions have no answer in their text" in may.describe()


def test_training_draws_one_of_several_answers():
    example = question("What of the ship?", "Ann Lee", "1725", "Hull")
    job = job_of(example)
    encoded = job.encode([example])
    generator = torch.Generator().manual_seed(0)
    drawn = {job.collate(encoded, generator=generator)["starts"].item() for _ in range(40)}
    assert len(drawn) == 3
    assert len({job.collate(encoded)["starts"].item() for _ in range(9)}) == 1


def test_figures_and_tables():
    job = job_of()
    predictions = [SpanAnswer("Ann", 0, 3, 0.5), SpanAnswer("in 1725", 23, 30, 0.5)]
    assert job.score(predictions, QUESTIONS) == pytest.approx({"exact_match": 0, "f1": 200 / 3})
    by_word, by_length, by_kind, confusion = job.tables(predictions, QUESTIONS)
    assert [row[0] for row in by_word.rows] == ["when", "who"]
    assert by_length.rows[0][0] == "1-500"
    assert {row[0] for row in by_kind.rows} == {"name", "number"}
    assert confusion.is_matrix
    assert (
        job.show(QUESTIONS[0], predictions[0]) == "Who built the ship? → Ann (0.50; right: Ann Lee)"
    )


def test_the_sliding_window_looks_where_the_question_stands():
    find = SlidingWindow({"in", "the", "was", "and", "it", "who", "when"})
    job = job_of()
    (prediction,) = job.baselines(QUESTIONS, QUESTIONS[:1])["sliding window"]
    start, end = find.answer("Who was hurt near Hull?", CONTEXT)
    near = [CONTEXT[s:e] for s, e in sentences_of(CONTEXT)]
    assert CONTEXT[start:end] in near[1]
    assert prediction.answer in CONTEXT


def test_requests_are_records_or_lines_with_a_tab():
    job = job_of()
    line = job.request("Who?\tIt was Ann.", "a.txt:1")
    record = job.request({"question": "Who?", "context": "It was Ann."}, "a.jsonl:1")
    assert (line.text, line.context) == (record.text, record.context) == ("Who?", "It was Ann.")
    with pytest.raises(DataError, match=r"a\.txt:2: expected a question, a tab and the text"):
        job.request("Who?", "a.txt:2")
    with pytest.raises(DataError, match=r"a\.jsonl:2: context must be text; got none"):
        job.request({"question": "Who?"}, "a.jsonl:2")


def test_positions_that_do_not_reach_are_an_error_before_training():
    job = job_of(model="transformer", max_length=600)
    with pytest.raises(SettingError, match=r"model.max_length must be at least 619, .*; got 512"):
        job.build_model()


def test_a_stride_beyond_the_window_is_refused():
    with pytest.raises(SettingError, match="stride must be at most max_length"):
        recipe(max_length=8, stride=9)
