"""Documents, questions about them and answers: how they are read, and what of them."""

import json

import pytest

from regard.cli.recipes import packaged_recipe
from regard.errors import DataError, SettingError
from regard.tasks import read_parts, read_recipe, recipe_from_table
from regard.tasks.sequences.documents import (
    by_overlap,
    extracts,
    pairs_of,
    read_documents,
    sentences,
    source_of,
)
from regard.tasks.sequences.generation import DocumentData, DocumentExample, GenerationTask
from regard.text import BadLines, Pair

TALE = "A king was old. He had a son. The son was called Hans. Hans ran away."
ROUND = "Rain fell. The king and the queen had a son. The queen and the son ran. It was old."
RECORD = {"context": TALE, "question": "How was the son called?", "answers": ["Hans", "Hans", "H."]}


def written(path, *records):
    path.write_text("".join(f"{one}\n" for one in records), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.jsonl", "{", "a.jsonl:2: not JSON"),
        ("a.jsonl", "[]", r"a\.jsonl:2: expected a JSON object, found \[\]"),
        ("a.jsonl", '{"text": "a"}', "a.jsonl:2: expected the key 'document' or 'context'; found"),
        ("a.jsonl", '{"document": "a"}', "a.jsonl:2: expected the key 'answers' or 'answer' or 's"),
        ("a.jsonl", '{"document": "a", "answers": [3]}', "a.jsonl:2: answers must be a text or a"),
        ("a.jsonl", '{"document": 3, "answer": "a"}', "a.jsonl:2: document must be text; got 3"),
        ("a.jsonl", '{"document": " ", "answer": "a"}', "a.jsonl:2: the document is empty"),
        ("a.jsonl", '{"document": "a", "answers": [" "]}', "a.jsonl:2: the answer is empty"),
        (
            "a.tsv",
            "only one",
            "a.tsv:2: expected at least 2 columns, found 1. The document is in c",
        ),
    ],
)
def test_lines_that_cannot_be_used(tmp_path, name, line, message):
    good = "a text\tan answer" if name.endswith("tsv") else json.dumps(RECORD)
    path = written(tmp_path / name, good, line)
    with pytest.raises(DataError, match=message):
        read_documents([path], DocumentData())
    bad = BadLines()
    assert len(read_documents([path], DocumentData(on_bad_line="skip"), bad_lines=bad)) == 1
    assert bad.total == 1


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(
        SettingError, match=r"the ending of .*a\.xml must be \.jsonl, \.tsv or \.csv"
    ):
        read_documents([written(tmp_path / "a.xml", "a")], DocumentData())
    with pytest.raises(SettingError, match="document, question and answer must be different colu"):
        DocumentData(question=2)
    with pytest.raises(SettingError, match="sentences must be at least 1; got 0"):
        recipe_from_table({"task": "generation", "data": {"sentences": 0}})


def test_the_sentences_that_share_rare_words_come_first():
    parts = sentences(TALE)
    assert parts == [
        "A king was old.",
        "He had a son.",
        "The son was called Hans.",
        "Hans ran away.",
    ]
    assert by_overlap(parts, "Who ran?")[0] == "Hans ran away."
    assert by_overlap(parts, "nothing of it") == parts  # as they stand
    one = DocumentExample(TALE, "Who ran?", (), "")
    assert source_of(one, DocumentData(sentences=1)) == "Who ran? ‖ Hans ran away."
    assert source_of(one, DocumentData()) == f"Who ran? ‖ {TALE}"
    summary = DocumentExample(TALE, "", (), "")
    assert source_of(summary, DocumentData(sentences=2)) == "A king was old. He had a son."
    chinese = DocumentExample("国王很老。他有个儿子。儿子走了。", "谁走了？", (), "")
    assert source_of(chinese, DocumentData(sentences=2)) == "谁走了？ ‖ 儿子走了。国王很老。"


@pytest.mark.parametrize("name", ["generation-copy", "generation-transformer"])
def test_documents_to_summarise_are_read_whole_by_the_recipes(name):
    data = read_recipe(packaged_recipe(name)).data
    assert source_of(DocumentExample(TALE, "", (), ""), data) == TALE
    with_question = source_of(DocumentExample(TALE, "Who ran?", (), ""), data)
    assert with_question == "Who ran? ‖ Hans ran away. A king was old."


def test_which_documents_are_shortened_is_described_and_checked():
    def describe_reading(**data):
        recipe = recipe_from_table({"task": "generation", "data": data})
        return GenerationTask.learn(recipe, [Pair("a", "b", ("b",), "")]).describe()[-1]

    assert describe_reading() == "documents are read whole, up to 2,048 tokens"
    cut = "3 sentences of a document are read: nearest to its question; without one, the first"
    assert describe_reading(sentences=3) == cut
    shortened = "with a question, 1 sentence of a document are read, nearest to it; others are read"
    assert describe_reading(sentences=1, shortened="asked").startswith(shortened)


def test_each_answer_is_learned_from_and_all_are_right():
    one = DocumentExample(TALE, "Who ran?", ("Hans", "the son"), "a:1")
    pairs = pairs_of([one], DocumentData(sentences=1))
    assert [pair.target for pair in pairs] == ["Hans", "the son"]
    (merged,) = pairs_of([one], DocumentData(sentences=1), merge=True)
    assert (merged.target, merged.references) == ("Hans", ("Hans", "the son"))


def test_no_document_is_trained_on_and_validated_on(tmp_path):
    lines = [
        json.dumps({"document": f"Tale {i // 3}.", "question": f"{i}?", "answers": ["yes", "no"]})
        for i in range(60)
    ]
    path = written(tmp_path / "tales.jsonl", *lines)
    recipe = recipe_from_table({"task": "generation", "data": {"train": str(path)}})
    parts = read_parts(recipe)
    train, valid = parts.train, parts.valid
    assert len(train) + 2 * len(valid) == 120
    held_out = {pair.source.partition("‖")[2] for pair in valid}
    assert held_out
    assert not held_out & {pair.source.partition("‖")[2] for pair in train}
    assert all(pair.references == ("yes", "no") for pair in valid)
    assert GenerationTask.read(recipe, "test") == []
    written(path, *lines[:9])
    with pytest.raises(DataError, match="at least 10 documents where"):
        read_parts(recipe)


def test_summaries_have_as_many_sentences_and_words_as_those_known():
    documents = [DocumentExample(ROUND, "", (), ""), DocumentExample("One only.", "", (), "")]
    summaries = extracts(documents, ["A son ran. He was old.", "The queen ran. She was old too."])
    assert summaries["the first 2 sentences"] == [
        "Rain fell. The king and the queen had a son.",
        "One only.",
    ]
    assert summaries["the first 6 words"][0] == "Rain fell. The king and the"
    both = "The king and the queen had a son. The queen and the son ran."
    assert summaries["the 2 sentences nearest to all"][0] == both
    assert summaries["TextRank's first 2 sentences"][0] == both
    assert "the first 2 words" not in extracts(documents)
