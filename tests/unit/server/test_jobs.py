"""Runs of jobs behind the routes: labels, tags and surprise, and what is refused."""

import re

import pytest
from tests.unit.inference.conftest import untrained
from tests.unit.server.conftest import answers_of, refusal

from regard.errors import SettingError
from regard.inference.text import Text
from regard.server import Limits, Service
from regard.server.batching import AbandonedError
from regard.server.work import Job, Part, Worker
from regard.tasks.labels.classification import LabelledText
from regard.tasks.running_text.language_modelling import Passage
from regard.text.reading.tagged import TaggedWords
from regard.viewer import Document

EXAMPLES = {
    "classification": [
        LabelledText("菜很好吃", "good", "taste", ""),
        LabelledText("太慢了", "bad", "speed", ""),
    ],
    "tagging": [TaggedWords(("江", "在", "京"), ("B-PER", "O", "B-LOC"), "")],
    "language_modelling": [Passage(("abcab", "bca"), "")],
}
SECTIONS = {
    "classification": {
        "model": {"type": "recurrent"},
        "head": {"pooling": "aspect"},
        "data": {"aspect": 3},
        "tokenizer": {"type": "characters"},
    },
    "tagging": {"model": {"type": "recurrent"}, "head": {"crf": True}},
    "language_modelling": {
        "model": {"type": "recurrent"},
        "tokenizer": {"type": "characters"},
        "data": {"context": 8},
    },
}


LABELLERS = {task: untrained({"task": task, **SECTIONS[task]}, EXAMPLES[task]) for task in EXAMPLES}
IN_USE = {task: labeller.use for task, labeller in LABELLERS.items()}


def ask_all(*requests):
    """The answers to requests that come together, each a path and its members."""
    return answers_of(Service(LABELLERS, Limits(max_texts=3, max_length=50)), *requests)


def test_texts_are_answered_as_by_the_labeller():
    texts_of = {
        "classification": ["菜好", "慢"],
        "tagging": ["江在京"],
        "language_modelling": ["abc"],
    }
    replies = ask_all(
        *(("/predict", {"run": task, "texts": texts}) for task, texts in texts_of.items())
    )
    for answer, (task, texts) in zip(replies, texts_of.items(), strict=True):
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["run"] == task
        for item, prediction in zip(body["answers"], LABELLERS[task].predict(texts), strict=True):
            expected = prediction.to_dict()
            if "probabilities" in expected:
                assert item["probabilities"] == pytest.approx(
                    expected.pop("probabilities"), abs=1e-5
                )
                assert item["label"] == expected["label"]
            else:
                assert item == expected


def test_what_is_not_in_the_vocabulary_is_named():
    (answer, looked) = ask_all(
        ("/predict", {"texts": ["菜好吗吗饭", "菜好"]}), ("/attention", {"text": "菜吗"})
    )
    assert [each.get("unknown") for each in answer.json()["answers"]] == [["吗", "饭"], None]
    assert looked.json()["replies"][0]["unknown"] == ["吗"]


def test_records_say_more_than_a_text():
    (both, tags) = ask_all(
        (
            "/predict",
            {"records": [{"text": "菜很好吃", "aspect": aspect} for aspect in ("taste", "speed")]},
        ),
        ("/predict", {"run": "tagging", "records": [{"tokens": ["江", "在 ", "京"]}]}),
    )
    first, second = both.json()["answers"]
    assert first["probabilities"] != second["probabilities"]
    assert tags.json()["answers"][0]["tokens"] == ["江", "在", "京"]


WORDS = r"records\[0\]: tokens must hold words"
LANGUAGE = {"run": "language_modelling", "text": "a"}
SAMPLE = {**LANGUAGE, "method": "sample"}
TAGGING = {"run": "tagging"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"text": "好", "beam_size": 3}, "beam_size must be left out for a run of classif"),
        ({"text": "好", "alignments": True}, "alignments must be left out for a run of c"),
        ({"records": [{"aspect": "taste"}]}, r"records\[0\]: text must hold something to"),
        ({"records": [{"text": 3}]}, r"records\[0\]: text must hold something .*; got 3"),
        ({"records": ["好"]}, r"records\[0\] must be an object; got '好'"),
        ({"records": [{"text": "好" * 60}]}, r"records\[0\] must be at most 50 characters"),
        ({"records": [{"text": "a\u0007"}]}, r"records\[0\] must hold no control charact"),
        ({**TAGGING, "records": [{"tokens": "江"}]}, WORDS),
        ({**TAGGING, "records": [{"tokens": [1]}]}, WORDS),
        ({**TAGGING, "records": [{"tokens": []}]}, WORDS),
        (
            {"text": "a", **TAGGING, "max_tokens": 3},
            "max_tokens must be left out for a run of tagging, which searches for nothing; got 3",
        ),
        (
            {**LANGUAGE, "alignments": True},
            "alignments must be left out for a run of language_modelling, which has no source",
        ),
        (
            {**LANGUAGE, "method": "sample", "n_best": 17},
            "n_best must be at most 16 samples; got 17",
        ),
        ({**LANGUAGE, "max_tokens": 9999}, "max_tokens must be at most 2000"),
        ({**LANGUAGE, "method": "sample", "top_p": 2.0}, "top_p must be above 0 and at most 1; go"),
        ({**LANGUAGE, "min_length": 10**5}, "min_length must be at most 2000; got 100000"),
        ({**LANGUAGE, "no_repeat_ngram": 0}, "no_repeat_ngram must be at least 1; got 0"),
        ({**LANGUAGE, "avoid": [" "]}, r"avoid\[0\] must hold something to read"),
        ({**LANGUAGE, "avoid": ["a"] * 101}, "avoid must be at most 100 long"),
        ({**LANGUAGE, "prefix": "a\u0007"}, "prefix must hold no control characters"),
        ({**LANGUAGE, "prefix": "b" * 60}, "prefix must be at most 50 characters long"),
        ({"text": "好", "avoid": ["菜"]}, "avoid must be left out for a run of classification"),
        (
            {**LANGUAGE, "min_length": 4},
            "min_length must be left out .* without one_line it writes",
        ),
        ({**SAMPLE, "temperature": 1e-46}, "temperature must be at least 1e-06; got 1e-46"),
        ({**SAMPLE, "temperature": 1e39}, r"temperature must be at most 1000; got 1e\+39"),
        ({**SAMPLE, "top_k": 0}, "top_k must be at least 1; got 0"),
        ({**SAMPLE, "seed": -1}, "seed must be at least 0; got -1"),
        ({**SAMPLE, "n_best": -1}, "n_best must be at least 1; got -1"),
        ({**LANGUAGE, "length_penalty": 1e300}, r"length_penalty must be at most 10; got 1e\+300"),
        ({**LANGUAGE, "length_penalty": -1}, "length_penalty must be at least 0; got -1"),
        ({**LANGUAGE, "repetition_penalty": 1e-300}, "repetition_penalty must be at least 0.01"),
        ({**LANGUAGE, "method": "greedy", "n_best": 2}, "n_best must go with method beam or sam"),
    ],
)
def test_what_is_wrong_is_refused_with_a_sentence(members, message):
    (answer,) = ask_all(("/predict", members))
    assert re.search(message, refusal(answer, 422))


def test_the_settings_of_a_request_are_those_of_its_search():
    settings = {"method": "beam", "beam_size": 3, "no_repeat_ngram": 2}
    settings |= {"prefix": "b", "avoid": ["c"], "max_tokens": 6}
    (answer,) = ask_all(("/predict", {**LANGUAGE, **settings}))
    (expected,) = LABELLERS["language_modelling"].predict(["a"], **settings)
    assert answer.json()["answers"] == [expected.to_dict()]
    assert expected.text().startswith("ab")


def test_too_many_records_are_refused():
    (answer,) = ask_all(("/predict", {"records": [{"text": "好"}] * 4}))
    assert "records must be at most 3; got 4." in refusal(answer, 413)


def test_a_bad_record_leaves_other_requests_alone():
    bad, good = ask_all(
        ("/predict", {"records": [{"text": "好"}, {"text": None}]}), ("/predict", {"text": "好"})
    )
    assert "records[1]: text must hold" in refusal(bad, 422)
    assert good.status_code == 200


def test_the_page_has_output_and_attention():
    label, tags = ask_all(
        ("/attention", {"text": "菜好"}), ("/attention", {"run": "tagging", "text": "江在京"})
    )
    (example,) = Document.from_json(label.text).examples
    assert example.maps[0].kind == "cross"
    assert {label for label, _ in example.answer.labels} == {"good", "bad"}
    (example,) = Document.from_json(tags.text).examples
    assert len(example.answer.tags) == 3


def test_what_only_translators_have_is_refused_when_looking():
    target, rows = ask_all(
        ("/attention", {"text": "好", "target": "x"}), ("/attention/rows", {"text": "好"})
    )
    assert "target must be left out for a run of classification" in refusal(target, 422)
    assert "run must be of translation; got one of classification" in refusal(rows, 422)


def test_the_list_of_runs_says_their_tasks():
    (reply,) = ask_all(("/runs", None))
    assert [run["task"] for run in reply.json()["runs"]] == list(EXAMPLES)
    assert all(run["beam_size"] is None for run in reply.json()["runs"])


def test_a_language_model_continues_texts():
    run = {"run": "language_modelling"}
    greedy = {**run, "method": "greedy", "max_tokens": 5}
    drawn = {**run, "text": "ab", "method": "sample", "max_tokens": 4, "n_best": 3, "seed": 7}
    continued, samples, repeated, beam = ask_all(
        ("/predict", {**greedy, "texts": ["ab", "c"]}),
        ("/predict", drawn),
        ("/predict", drawn),
        ("/predict", {**run, "text": "ab", "method": "beam", "max_tokens": 3}),
    )
    labeller = LABELLERS["language_modelling"]
    answers = labeller.predict(["ab", "c"], method="greedy", max_tokens=5)
    assert continued.json() == {
        "run": "language_modelling",
        "answers": [each.to_dict() for each in answers],
    }
    (expected,) = labeller.predict("ab", method="sample", max_tokens=4, n_best=3, seed=7)
    assert samples.json()["answers"] == [expected.to_dict()]
    assert repeated.json() == samples.json()
    assert len(beam.json()["answers"][0]["continuations"]) == 1


def test_prompts_are_continued_in_a_batch_and_a_wrong_one_alone(monkeypatch):
    batches, original = [], Text.answer_parts

    def recorded(self, prompts, **options):
        batches.append(list(prompts))
        if "c" in prompts:
            raise SettingError("text must not be c; got c.")
        return original(self, prompts, **options)

    monkeypatch.setattr(Text, "answer_parts", recorded)
    run = {"run": "language_modelling", "method": "greedy", "max_tokens": 3}
    reply, _ = ask_all(
        ("/predict", {**run, "texts": ["ab", "a", "b"]}), ("/predict", {**run, "text": "c"})
    )
    assert batches[0][:3] == ["ab", "a", "b"]
    assert [each["prompt"] for each in reply.json()["answers"]] == ["ab", "a", "b"]
    work, job = Worker(IN_USE), Job("answer", "language_modelling", _greedy(3))
    continued, refused = work(job, [*map(_part, ("ab", "c"))], lambda: True)
    assert continued.to_dict() == reply.json()["answers"][0]
    assert isinstance(refused, SettingError)


def test_what_nobody_waits_for_any_more_is_given_up():
    work, job = Worker(IN_USE), Job("answer", "language_modelling", _greedy(20))
    with pytest.raises(AbandonedError):
        work(job, [_part("ab")], lambda: False)


def _part(text):
    (ids,) = IN_USE["language_modelling"].parse(text, "text").parts
    return Part(ids, 1)


def _greedy(tokens):
    decoding = LABELLERS["language_modelling"].task.recipe.decoding
    return decoding.changed(method="greedy", max_tokens=tokens)
