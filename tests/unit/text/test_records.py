"""Labelled texts and tagged sentences from files, and messages on lines that cannot be used."""

import json

import pytest

from regard.errors import DataError, SettingError
from regard.text import BadLines, read_lines
from regard.text.reading.forms import text_suffix
from regard.text.reading.records import UNLABELLED, Field, read_records
from regard.text.reading.tagged import read_tagged, read_words

FIELDS = [Field("label", 1), Field("text", 3)]


def test_columns_and_keys_give_the_same_records(write):
    rows = [("1", "酒店", "很好。"), ("0", "书", "never again")]
    tsv = write("a.tsv", "".join("\t".join(row) + "\n" for row in rows))
    lines = [json.dumps({"label": int(a), "aspect": b, "text": c}) for a, b, c in rows]
    jsonl = write("a.jsonl", "\n".join(lines) + "\n")
    packed = write("a.tsv.gz", tsv.read_text())
    expected = [{"label": a, "text": c} for a, _, c in rows]
    for path in (tsv, jsonl, packed):
        read = list(read_records(path, FIELDS))
        assert [record for record, _ in read] == expected
        assert [where for _, where in read] == [f"{path}:1", f"{path}:2"]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.tsv", "1\tb", r"a.tsv:2: expected 3 columns, found 2. .* label in column 1, text in"),
        ("a.tsv", "1\tb\t ", r"a.tsv:2: the text is empty"),
        ("a.tsv", "1\tb\tc\td", r"a.tsv:2: expected 3 columns, found 4"),
        ("a.jsonl", "{", r"a.jsonl:2: not JSON"),
        ("a.jsonl", "[1]", r"a.jsonl:2: expected a JSON object, found \[1\]"),
        ("a.jsonl", '{"label": 1}', r"a.jsonl:2: expected the key 'text'; found 'label'"),
        ("a.jsonl", '{"label": 1, "text": 2.5}', r"a.jsonl:2: text must be text; got 2.5"),
        ("a.jsonl", '{"label": "a", "text": true}', r"a.jsonl:2: text must be text; got True"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_or_left_out(write, name, line, message):
    good = {"a.tsv": "1\tb\tc", "a.jsonl": '{"label": 1, "text": "c"}'}[name]
    path = write(name, f"{good}\n{line}\n{good}\n")
    with pytest.raises(DataError, match=message):
        list(read_records(path, FIELDS))
    bad = BadLines()
    assert len(list(read_records(path, FIELDS, on_bad_line="skip", bad_lines=bad))) == 2
    assert bad.total == 1


def test_a_file_without_records_is_named(write):
    with pytest.raises(DataError, match=r"a.tsv must hold records of label, text; got none"):
        list(read_records(write("a.tsv", ""), FIELDS))
    with pytest.raises(SettingError, match=r"the ending of .*a.xml must be one of .csv, .jsonl, "):
        list(read_records(write("a.xml", "x"), FIELDS))
    with pytest.raises(DataError, match=r"b.tsv:1: not UTF-8"):
        list(read_records(write("b.tsv", b"1\tb\tcaf\xe9\n"), FIELDS))


CONLLU = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_

1\t好\t好\tADJ\t_\t_\t0\troot\t_\t_
"""


def test_conllu_gives_words_without_contractions_and_empty_nodes(write):
    sentences = list(read_tagged(write("a.conllu", CONLLU)))
    assert [(sentence.words, sentence.tags) for sentence in sentences] == [
        (("do", "n't"), ("AUX", "PART")),
        (("好",), ("ADJ",)),
    ]
    assert sentences[1].where.endswith("a.conllu:7")


def test_columns_and_lists_give_the_same_sentences(write):
    text = "x\t北\tB-LOC\nx\t京\tI-LOC\n\n\nx\t去\tO\n"
    columns = list(read_tagged(write("a.txt", text), word=2, tag=3))
    records = [
        {"tokens": ["北", "京"], "tags": ["B-LOC", "I-LOC"]},
        {"tokens": ["去"], "tags": ["O"]},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    lists = list(read_tagged(write("a.jsonl", lines)))
    assert [(s.words, s.tags) for s in columns] == [(s.words, s.tags) for s in lists]
    assert len(columns) == 2
    # Names of one's own come first, and the usual ones stand in for them.
    records[0] |= {"字": ["东", "京"]}
    path = write("b.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    sentences = list(read_tagged(path, word="字", tag="标"))
    assert [s.words for s in sentences] == [("东", "京"), ("去",)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "a\n", r"a.txt:1: expected at least 2 columns, found 1. A tab must stand"),
        ("a.txt", "a\t \n", r"a.txt:1: the tag is empty"),
        ("a.txt", "\tO\n", r"a.txt:1: the word is empty. Fill it in, or leave"),
        ("a.jsonl", '{"tokens": ["a"], "tags": []}', r"tags must be as many as .*; got 0 for 1"),
        ("a.jsonl", '{"words": []}', r"a.jsonl:1: expected a JSON object"),
        ("a.conllu", "1\ta\n", r"a.conllu:1: expected at least 10 columns, found 2"),
        ("a.conllu", "# only\n", r"must hold sentences of words and tags; got none"),
    ],
)
def test_a_sentence_that_cannot_be_used_is_named_or_left_out(write, name, text, message):
    with pytest.raises(DataError, match=message):
        list(read_tagged(write(name, text)))
    if name == "a.txt":
        path, bad = write(name, f"a\tO\n\n{text}\nc\tO\n"), BadLines()
        sentences = read_tagged(path, on_bad_line="skip", bad_lines=bad)
        assert ([sentence.words for sentence in sentences], bad.total) == ([("a",), ("c",)], 1)


WORDS = [("Ann", "B-PER"), ("saw", "O"), ("#", "O"), ("Rome", "B-LOC")]
BLOCK = "".join(f"{word}\t{tag}\n" for word, tag in WORDS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.conll", f"# sent_id = 1\n# newdoc\n# text = Ann saw # Rome\n{BLOCK}"),
        ("a.conll", "# id 12 domain=en\n" + BLOCK.replace("\t", " ")),
        ("a.conll", "# id 5239d808\tdomain=en\n" + BLOCK.replace("\t", " ")),
        ("a.conll", f"# id 5239d808\tdomain=en\ttopic=travel\n{BLOCK}"),
        ("a.txt", f"-DOCSTART-\tO\n\n{BLOCK}\n-DOCSTART- -X-\n"),
        ("a.conll", "-DOCSTART- O\n" + BLOCK.replace("\t", " ")),
        ("a.txt", BLOCK.replace("\t", "    ")),
        ("a.txt", BLOCK.replace("\t", " \t ")),
        ("a.bio", BLOCK.replace("saw\t", "saw\t\t")),
        ("a.iob2", f"\n\n{BLOCK}\n\n"),
        ("a.train", f"{BLOCK}\n"),
    ],
)
def test_comments_marks_of_documents_and_spaces_are_no_words(write, name, text):
    path = write(name, text)
    (sentence,) = read_tagged(path)
    assert list(zip(sentence.words, sentence.tags, strict=True)) == WORDS
    untagged = read_words(read_lines(path), text_suffix(path), Field("word", 1))
    assert [words_alone.words for words_alone in untagged] == [sentence.words]


def test_characters_with_their_places_are_no_words(write):
    path = write("a.txt", "王0\tB-PER.NAM\n芳1\tI-PER.NAM\n去0\tO\n20\tO\n\n" * 3)
    with pytest.raises(DataError, match=r"end in their position .*\(王0, 芳1, 去0, …\).* sed -E"):
        list(read_tagged(path))


def test_pairs_without_an_agreed_label_are_left_out_and_counted(write):
    text = "gold_label\ttext\n-\tNobody agreed.\nneutral\tA room.\n"
    rows = [{"gold_label": label, "text": "A room."} for label in ("neutral", "-")]
    for path in (write("a.tsv", text), write("a.jsonl", "\n".join(map(json.dumps, rows)))):
        bad = BadLines()
        fields = [Field("text", 1), Field("label", "gold_label")]
        (record,) = read_records(path, fields, bad_lines=bad)
        assert record[0] == {"text": "A room.", "label": "neutral"}
        assert bad.counts == {UNLABELLED: 1}


def test_labels_may_be_true_and_false_and_say_that_they_are_none(write):
    fields = [Field("text", 1), Field("label", 2)]
    path = write("a.jsonl", '{"text": "a", "label": true}\n{"text": "b", "label": false}\n')
    assert [record["label"] for record, _ in read_records(path, fields)] == ["true", "false"]
    path = write("a.csv", "text,label\na,NaN\nb,good\n")
    with pytest.raises(DataError, match=r"a.csv:2: the label is NaN, .*: --on-bad-line skip\."):
        list(read_records(path, fields))
    assert len(list(read_records(path, fields, on_bad_line="skip"))) == 1
