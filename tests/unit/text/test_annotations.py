"""Exports of annotation tools: spans of characters become tags of words, classes labels."""

import json

import pytest

from regard.errors import DataError
from regard.text import BadLines
from regard.text.reading.annotations import REJECTED, UNANNOTATED, as_record, words_of
from regard.text.reading.records import read_records
from regard.text.reading.tables import Field
from regard.text.reading.tagged import read_tagged

TEXT = "Ann met Li Wei in Rome."
SPANS = [(0, 3, "PER"), (8, 14, "PER"), (18, 22, "LOC")]
WORDS = ("Ann", "met", "Li", "Wei", "in", "Rome", ".")
TAGS = ("B-PER", "O", "B-PER", "I-PER", "O", "B-LOC", "O")
TRIPLES = [list(span) for span in SPANS]
OFFSETS = [{"start_offset": a, "end_offset": b, "label": c, "id": a} for a, b, c in SPANS]
NAMED = [{"start": a, "end": b, "label": c} for a, b, c in SPANS]
STUDIO = [{"start": a, "end": b, "text": TEXT[a:b], "labels": [c]} for a, b, c in SPANS]
REGIONS = [
    {"from_name": "ner", "to_name": "text", "type": "labels", "value": value} for value in STUDIO
]
MENTIONS = {"PER": {"Ann": [[0, 2]], "Li Wei": [[8, 13]]}, "LOC": {"Rome": [[18, 21]]}}
TASK = {"id": 1, "data": {"text": TEXT}, "annotations": [{"result": REGIONS}]}
# A file of each layout, and the settings of its columns.
LAYOUTS = {
    "doccano.jsonl": ({"id": 1, "text": TEXT, "label": TRIPLES, "Comments": []}, {}),
    "doccano-labels.jsonl": ({"id": 1, "text": TEXT, "labels": TRIPLES}, {}),
    "doccano-relations.jsonl": ({"text": TEXT, "entities": OFFSETS, "relations": []}, {}),
    "doccano-annotations.json": ([{"text": TEXT, "annotations": OFFSETS, "meta": {}}], {}),
    "studio.json": ([TASK], {"tag": "ner"}),
    "studio-min.json": ([{"text": TEXT, "ner": STUDIO, "annotator": 1}], {"tag": "ner"}),
    "studio-column.json": ([{"review": TEXT, "ner": STUDIO}], {"word": "review", "tag": "ner"}),
    "prodigy.jsonl": (
        {"text": TEXT, "spans": NAMED, "answer": "accept", "tokens": [{"text": "Ann", "id": 0}]},
        {},
    ),
    "cluener.json": ({"text": TEXT, "label": MENTIONS}, {}),
    "spacy.json": ([[TEXT, {"entities": TRIPLES}]], {}),
    "spacy.jsonl": ([TEXT, {"entities": TRIPLES}], {}),
    "spacy-pairs.json": ([[TEXT, TRIPLES]], {}),
    "spacy-annotator.json": (
        {"classes": ["PER"], "annotations": [[TEXT, {"entities": TRIPLES}], None]},
        {},
    ),
    "spacy-doc.jsonl": ({"text": TEXT, "ents": NAMED, "tokens": [{"id": 0, "start": 0}]}, {}),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_spans_of_every_layout_are_tags_of_words(name, write):
    value, columns = LAYOUTS[name]
    (sentence,) = read_tagged(write(name, json.dumps(value)), **columns)
    assert (sentence.words, sentence.tags) == (WORDS, TAGS)


@pytest.mark.parametrize(("ending", "sign"), [("csv", ","), ("tsv", "\t")])
def test_spans_in_a_cell_of_a_table_are_tags_of_words(ending, sign, write):
    cell = json.dumps(STUDIO).replace('"', '""')
    rows = [["id", "text", "ner", "lead_time"], ["7", f'"{TEXT}"', f'"{cell}"', "1.5"]]
    path = write(f"studio.{ending}", "".join(sign.join(row) + "\n" for row in rows))
    (sentence,) = read_tagged(path, tag="ner")
    assert (sentence.words, sentence.tags) == (WORDS, TAGS)


def test_brat_has_its_annotations_beside_the_text(write):
    write("a.txt", f"{TEXT}\n\nHi.\nLi sang.\n")
    base = len(TEXT) + 6
    lines = [f"T{n}\t{c} {a} {b}\t{TEXT[a:b]}\n" for n, (a, b, c) in enumerate(SPANS)]
    lines += [f"T9\tPER {base} {base + 2}\tLi\n", "R1\tKnows Arg1:T0 Arg2:T1\n", "#1\tNote T0\n"]
    sentences = list(read_tagged(write("a.ann", "".join(lines))))
    assert [each.tags for each in sentences] == [TAGS, ("O", "O"), ("B-PER", "O", "O")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("T1\tPER 0 99\tAnn", r"a\.ann:1: a span must lie within the 23 characters"),
        ("T1\tPER 99 104\tAnn", r"a\.ann:1: expected T, .* within the 24 characters"),
        ("T1\tPER 0 3;8 10\tAnn Li", r"a\.ann:1: .* a start and an end as whole numbers"),
        ("T1\tPER 4 7\tAnn", r"a\.ann:1: a span must be where its text stands; got 'met'"),
        ("T1 PER 4 7", r"a\.ann:1: expected T, a number, a tab"),
    ],
)
def test_what_is_wrong_in_brat_is_told_by_its_line(line, message, write):
    write("a.txt", f"{TEXT}\n")
    with pytest.raises(DataError, match=message):
        list(read_tagged(write("a.ann", f"{line}\n")))


def test_brat_needs_its_text(write):
    with pytest.raises(DataError, match=r"must stand beside its text, .* there is no a\.txt"):
        list(read_tagged(write("a.ann", "T1\tPER 0 3\tAnn\n")))


def test_chinese_texts_are_tagged_by_characters(write):
    record = {"text": "李伟住在北京。", "label": [[0, 2, "PER"], [4, 6, "LOC"]]}
    (sentence,) = read_tagged(write("a.jsonl", json.dumps(record)))
    assert sentence.words == tuple("李伟住在北京。")
    assert sentence.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O")


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[18, 21, "LOC"]], r"got 18 to 21 \('Rom', LOC\) inside 'Rome', which is 18 to 22"),
        ([[1, 3, "PER"]], r"a span must begin and end with a word; got 1 to 3 \('nn', PER\)"),
        ([[0, 24, "PER"]], r"within the 23 characters of its text; got 0 to 24 \(PER\)"),
        ([[-3, 3, "PER"]], r"got -3 to 3 \(PER\)"),
        ([[3, 3, "PER"]], r"got 3 to 3 \(PER\)"),
        ([[3, 4, "PER"]], r"a span must hold a word; got white space"),
        ([[8, 14, "PER"], [11, 14, "NAME"]], r"must not overlap.* got 8 to 14 .*and 11 to 14"),
        ([[8, 14, "PER"], [8, 14, "ORG"]], r"spans must not overlap"),
        ([[8, 14, ["PER", "ORG"]]], r"a span must have one label; got \['PER', 'ORG'\]"),
        ([[8, 14, ""]], r"a span must have a label"),
        ([{"start": "8", "end": 14, "label": "PER"}], r"a start and an end as whole numbers"),
        ([{"start": 4, "end": 7, "label": "PER", "text": "Ann"}], r"got 'met' at 4 to 7 for 'Ann'"),
    ],
)
def test_a_span_that_cannot_be_tags_is_told_by_its_line(spans, message, write):
    right = json.dumps({"text": TEXT, "label": TRIPLES})
    path = write("a.jsonl", f"{right}\n{json.dumps({'text': TEXT, 'label': spans})}\n")
    with pytest.raises(DataError, match=rf"a\.jsonl:2: .*{message}"):
        list(read_tagged(path))
    assert len(list(read_tagged(path, on_bad_line="skip"))) == 1


def test_spaces_at_the_ends_of_a_span_and_spans_told_twice_count_for_nothing(write):
    spans = [[0, 4, "PER"], [7, 15, "PER"], [8, 14, "PER"], [18, 22, "LOC"]]
    (sentence,) = read_tagged(write("a.jsonl", json.dumps({"text": TEXT, "label": spans})))
    assert sentence.tags == TAGS


def test_words_end_at_marks_and_apostrophes():
    text = "Rome's l’Italie (COVID-19)\n东京2020"
    words = [text[start:end] for start, end in words_of(text)]
    parts = ["Rome", "'", "s", "l", "’", "Italie", "(", "COVID", "-", "19", ")", "东", "京", "2020"]
    assert words == parts


def test_texts_without_spans_have_no_entities(write):
    lines = [{"text": TEXT, "label": TRIPLES}, {"text": "No one.", "label": []}]
    sentences = list(read_tagged(write("a.jsonl", "\n".join(map(json.dumps, lines)))))
    assert sentences[1].tags == ("O", "O", "O")
    lines = [{"text": TEXT, "ner": STUDIO}, {"text": "No one."}]
    sentences = list(read_tagged(write("b.jsonl", "\n".join(map(json.dumps, lines))), tag="ner"))
    assert sentences[1].tags == ("O", "O", "O")


def test_rejected_and_skipped_annotations_are_left_out_and_counted(write):
    every = [
        {"text": TEXT, "spans": NAMED, "answer": answer}
        for answer in ("accept", "reject", "ignore")
    ]
    bad_lines = BadLines()
    path = write("a.jsonl", "\n".join(map(json.dumps, every)))
    assert len(list(read_tagged(path, bad_lines=bad_lines))) == 1
    assert bad_lines.counts == {REJECTED: 2}
    tasks = [
        TASK,
        {"data": {"text": TEXT}, "annotations": [{"was_cancelled": True, "result": []}]},
        {"data": {"text": TEXT}, "annotations": []},
    ]
    bad_lines = BadLines()
    path = write("b.json", json.dumps(tasks))
    assert len(list(read_tagged(path, tag="ner", bad_lines=bad_lines))) == 1
    assert bad_lines.counts == {REJECTED: 1, UNANNOTATED: 1}


def choice(*labels, **members):
    value = {"choices": list(labels)}
    return {"result": [{"from_name": "mood", "type": "choices", "value": value}], **members}


def test_annotators_agree_by_majority_or_the_ground_truth_decides():
    def mood(*annotations):
        return as_record({"data": {"text": "Clean."}, "annotations": [*annotations]}).get("mood")

    assert mood(choice("good"), choice("bad"), choice("good")) == "good"
    assert mood(choice("good"), choice("bad")) is None
    assert mood(choice("good"), choice("bad", ground_truth=True)) == "bad"
    assert mood(choice("good", was_cancelled=True), choice("bad")) == "bad"


CLASSES = {
    "doccano.jsonl": ({"id": 1, "data": "Clean.", "label": ["good"]}, ("data", "label")),
    "studio.json": ([{"data": {"r": "Clean."}, "annotations": [choice("good")]}], ("r", "mood")),
    "studio-min.json": ([{"r": "Clean.", "mood": "good", "lead_time": 1.5}], ("r", "mood")),
    "prodigy.jsonl": ({"text": "Clean.", "label": "good", "answer": "accept"}, ("text", "label")),
    "prodigy-choice.jsonl": (
        {
            "text": "Clean.",
            "options": [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}],
            "accept": [1],
            "answer": "accept",
        },
        ("text", "label"),
    ),
    "spacy.json": ([["Clean.", {"cats": {"good": 1.0, "bad": 0.0}}]], ("text", "label")),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_every_layout_are_labels(name, write):
    value, (text, label) = CLASSES[name]
    fields = (Field("text", text), Field("label", label))
    ((record, _),) = read_records(write(name, json.dumps(value)), fields)
    assert record == {"text": "Clean.", "label": "good"}
