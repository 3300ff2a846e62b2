"""Multiple choice: where wrong answers come from, batches, baselines, bad input."""

import json
from dataclasses import replace

import pytest
import torch
from tests.unit.tasks.conftest import recipe_of

from regard.errors import DataError
from regard.tasks.questions.multiple_choice import Choice, Choices, MultipleChoiceAnswering

TALE = "A king had three sons. The youngest found a golden bird in the wood."
TOLD = {
    "Who had sons?": "a king",
    "What was found?": "a golden bird",
    "Where was it?": "in the wood",
    "Who found it?": "the youngest",
    "How many sons?": "three",
}


def recipe(model="match", folder=None, **data):
    compares = {"compares": True} if model == "match" else {}
    data = {"max_length": 64} | data
    return recipe_of("multiple_choice", model, folder, data=data, **compares)


def written(folder, records):
    text = "\n".join(json.dumps(record) for record in records)
    (folder / "q.jsonl").write_text(text, encoding="utf-8")
    return recipe(folder=folder, train="q.jsonl")


def records_of(**more):
    return [
        {"question": q, "context": TALE, "answers": [a], "story": "s"} | more
        for q, a in TOLD.items()
    ]


def test_wrong_answers_are_those_to_other_questions_of_the_story(tmp_path):
    records = records_of()
    records[0]["answers"].append("Three!")  # right too, so never drawn as wrong
    examples = MultipleChoiceAnswering.read(written(tmp_path, records), "train")
    assert len(examples) == 5
    for example, record in zip(examples, records, strict=True):
        assert example.choices[example.right] == record["answers"][0]
        assert len(set(example.choices)) == 4
        assert set(example.choices) <= set(TOLD.values())
    assert "three" not in examples[0].choices
    repeated = MultipleChoiceAnswering.read(written(tmp_path, records), "train")
    assert examples == repeated
    assert len({example.right for example in examples}) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choices": ["an owl", "a cat"]}, "the first of answers must be one of choices"),
        ({"story": "other"}, "its story must have 3 other answers .*; got 0"),
    ],
)
def test_a_question_without_choices_is_named_or_left_out(tmp_path, change, message):
    records = [*records_of(), records_of()[0] | change]
    recipe = written(tmp_path, records)
    with pytest.raises(DataError, match=rf"q\.jsonl:6: {message}"):
        MultipleChoiceAnswering.read(recipe, "train")
    skipping = replace(recipe, data=replace(recipe.data, on_bad_line="skip"))
    assert len(MultipleChoiceAnswering.read(skipping, "train")) == 5


def examples():
    choices = tuple(TOLD.values())
    first = Choices("Who had sons?", TALE, choices[:4], 0, "q.jsonl:1")
    return [first, Choices("What was found?", TALE, choices[:2], 1, "q.jsonl:2")]


@pytest.mark.parametrize("model", ["match", "transformer"])
def test_a_question_with_fewer_answers_never_gets_another(model):
    torch.manual_seed(0)
    job = MultipleChoiceAnswering.learn(recipe(model), examples())
    batch = job.collate(job.encode(examples()))
    network = job.build_model().eval()
    first, second = job.predict(network, batch)
    assert len(first.probabilities) == 4
    assert len(second.probabilities) == 2
    assert sum(second.probabilities) == pytest.approx(1)
    loss, count = job.loss(network, batch)
    expected = -torch.tensor([first.probabilities[0], second.probabilities[1]]).log().sum()
    assert (loss.item(), count) == (pytest.approx(expected.item(), rel=1e-4), 2)
    assert job.loss(network, batch, smoothing=0.1)[0].isfinite()
    # The same alone: what stands beside it in a batch changes nothing.
    (single,) = job.predict(network, job.collate(job.encode(examples()[1:])))
    assert single.probabilities == pytest.approx(second.probabilities, abs=1e-5)


def test_baselines_score_and_tables():
    job = MultipleChoiceAnswering.learn(recipe(), examples())
    wrong = replace(examples()[0], choices=("a king", "an owl and a cat", "a fox", "a bear"))
    baselines = job.baselines([], [wrong])
    assert {name: answers[0].index for name, answers in baselines.items()} == {
        "always the first": 0,
        "longest overlap": 0,
        "sliding window": 0,
    }
    predictions = [Choice("a king", 0, (1.0, 0.0, 0.0, 0.0)), Choice("a king", 0, (0.7, 0.3))]
    assert job.score(predictions, examples()) == {"accuracy": 50.0}
    assert job.example_score(predictions[1], examples()[1]) == 0.3
    assert job.tables(predictions, examples())[2].rows == (("yes", 50.0, 2),)


def test_sentences_of_the_text_are_read_beside_the_question(tmp_path):
    told = TALE + " He ran."
    question = {"question": "What was found?", "context": told}
    answers = [{"text": "golden bird", "start": TALE.index("golden")}]
    (tmp_path / "q.jsonl").write_text(json.dumps({**question, "answers": answers}), "utf-8")
    of_sentences = recipe("transformer", folder=tmp_path, train="q.jsonl", sentences=True)
    (asked,) = MultipleChoiceAnswering.read(of_sentences, "train")
    assert asked.choices == ("A king had three sons.", TALE[23:], "He ran.")
    assert asked.right == 1
    job = MultipleChoiceAnswering.learn(of_sentences, [asked])
    (encoded,) = job.encode([asked])
    ids = job.tokenizer.encode
    pairs = [(pair["other"], pair["ids"]) for pair in encoded["pairs"]]
    assert pairs == [(ids("What was found?"), ids(sentence)) for sentence in asked.choices]
    for request in (question, f"What was found?\t{told}"):
        assert job.request(request, "a:1") == replace(asked, right=-1, where="a:1")
    with pytest.raises(DataError, match="a:1: the text must have a sentence; got none"):
        job.request({**question, "context": "…"}, "a:1")


def test_a_request_needs_choices():
    job = MultipleChoiceAnswering.learn(recipe(), examples())
    with pytest.raises(DataError, match=r"a:1: choices must be at least two; got \['x'\]"):
        job.request({"question": "a", "context": "b", "choices": ["x"]}, "a:1")
    with pytest.raises(DataError, match=r"a:1: expected a JSON object with question, context"):
        job.request("Who?", "a:1")
