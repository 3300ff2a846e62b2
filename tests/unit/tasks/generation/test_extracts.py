"""Answers that take no model: which sentences, how many, and in which order."""

import json

import pytest

from regard.tasks import recipe_from_table
from regard.tasks.generation import DocumentExample, GenerationTask
from regard.tasks.generation.extracts import extracts

TALE = "A king was old. He had a son. The son was called Hans. Hans ran away."
ROUND = "Rain fell. The king and the queen had a son. The queen and the son ran. It was old."


def test_questions_are_answered_by_sentences_of_the_document() -> None:
    found = extracts([DocumentExample(TALE, "Who ran away?", (), "")])
    assert found == {
        "the first sentence": ["A king was old."],
        "the sentence that shares most words with the question": ["Hans ran away."],
    }


def test_summaries_have_as_many_sentences_and_words_as_those_known() -> None:
    documents = [DocumentExample(ROUND, "", (), ""), DocumentExample("One only.", "", (), "")]
    found = extracts(documents, ["A son ran. He was old.", "The queen ran. She was old too."])
    assert found["the first 2 sentences"] == [
        "Rain fell. The king and the queen had a son.",
        "One only.",
    ]
    assert found["the first 6 words"][0] == "Rain fell. The king and the"
    both = "The king and the queen had a son. The queen and the son ran."
    assert found["the 2 sentences nearest to all"][0] == both
    assert found["TextRank's first 2 sentences"][0] == both
    assert "the first 2 words" not in extracts(documents)


def test_chinese_is_ranked_by_characters() -> None:
    text = "天下雨了。国王有一个儿子。国王的儿子走了。儿子很伤心。"
    found = extracts([DocumentExample(text, "", (), "")], ["国王的儿子"])
    assert found["TextRank's first sentence"] == ["国王的儿子走了。"]
    assert found["the first 5 characters"] == ["天下雨了。国"]


@pytest.mark.parametrize("is_there", [True, False])
def test_the_text_of_training_says_how_long_a_summary_is(tmp_path, is_there) -> None:
    path, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    test.write_text(json.dumps({"document": ROUND, "summary": "A son."}) + "\n", "utf-8")
    if is_there:
        path.write_text(json.dumps({"document": TALE, "summary": "A son ran."}) + "\n", "utf-8")
    table = {
        "task": "generation",
        "data": {"train": str(path), "valid": str(test), "test": str(test)},
    }
    found = GenerationTask.baselines(recipe_from_table(table), "test")
    assert ("the first 3 words" in found) == is_there
    assert found["the first sentence"] == ["Rain fell."]
