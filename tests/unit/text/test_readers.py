import json

import pytest

from regard.errors import DataError, SettingError
from regard.text import BadLines, PairLayout, read_pairs


def sides(pairs):
    return [(pair.source, pair.target) for pair in pairs]


def test_two_files_are_read_side_by_side(write):
    source = write("train.en.gz", "A  dog .\nTwo cats.\n")
    target = write("train.de", "Ein\u00a0Hund.\r\nZwei Katzen.")
    pairs = list(read_pairs(source, target))
    assert sides(pairs) == [("A dog .", "Ein Hund."), ("Two cats.", "Zwei Katzen.")]
    assert pairs[1].where == f"{source}:2"
    assert pairs[1].references == ("Zwei Katzen.",)


@pytest.mark.parametrize(("left", "right", "counts"), [(3, 2, "3 and 2"), (2, 5, "2 and 5")])
def test_different_numbers_of_lines_are_both_named(write, left, right, counts):
    source, target = write("a.en", "x\n" * left), write("a.de", "x\n" * right)
    message = rf"a\.en and .*a\.de must have as many lines as each other; got {counts}\."
    for on_bad_line in ("error", "skip"):
        with pytest.raises(DataError, match=message):
            list(read_pairs(source, target, on_bad_line=on_bad_line))


def test_a_tab_is_no_column_in_a_file_of_lines(write):
    assert sides(read_pairs(write("a.en", "a\tb\n"), write("a.de", "c\n"))) == [("a b", "c")]


def test_columns_are_chosen_and_further_ones_are_references(write):
    path = write("a.tsv", "en\tzh 1\tlicence\tzh 2\nb\tc\tx\t \n")
    pairs = list(read_pairs(path, layout=PairLayout(columns=(1, 2, 4))))
    assert pairs[0].references == ("zh 1", "zh 2")
    assert pairs[1].references == ("c",)
    assert sides(read_pairs(path, layout=PairLayout(columns=(2, 1)))) == [
        ("zh 1", "en"),
        ("c", "b"),
    ]


def test_pairs_of_one_source_become_references_on_request(write):
    path = write("a.tsv", "hi\t嗨\nbye\t再见\nhi\t你好\nhi\t嗨\n")
    merged = list(read_pairs(path, layout=PairLayout(merge_references=True)))
    assert [(pair.source, pair.references) for pair in merged] == [
        ("hi", ("嗨", "你好")),
        ("bye", ("再见",)),
    ]
    assert len(list(read_pairs(path))) == 4


def test_jsonl_has_keys_of_its_own(write):
    records = [
        {"source": "a", "target": "b"},
        {"source": "c", "references": ["d", "e"]},
        {"source": "f", "target": "g", "references": ["h", "g"]},
    ]
    path = write("a.jsonl.gz", "\n".join(json.dumps(record) for record in records))
    assert [pair.references for pair in read_pairs(path)] == [("b",), ("d", "e"), ("g", "h")]
    path = write("b.jsonl", '{"zh": "我", "en": "I"}\n')
    layout = PairLayout(columns=("zh", "en"))
    assert sides(read_pairs(path, layout=layout)) == [("我", "I")]


GOOD = {"a.tsv": "a\tb\n", "a.csv": "a,b\n", "a.jsonl": '{"source":"a","target":"b"}\n'}


@pytest.mark.parametrize(
    ("name", "line", "reason", "message"),
    [
        ("a.tsv", "c\td\te", "columns", r"expected 2 columns, found 3\. Is there a tab inside"),
        ("a.csv", "c,d,e", "columns", r"expected 2 columns, found 3\. Is there a delimiter"),
        ("a.tsv", "c", "columns", r"expected 2 columns, found 1\. A tab must"),
        ("a.tsv", " \tb", "empty source", r"the source is empty\."),
        ("a.tsv", "a\t\u00a0", "empty target", r"the target is empty\."),
        ("a.tsv", b"a\t\xff", "not UTF-8", r"not UTF-8 \(byte 0xFF at position 3;"),
        ("a.jsonl", '{"so', "JSON", r"not JSON: Untermin"),
        ("a.jsonl", "[1]", "JSON", r"expected a JSON object"),
        ("a.jsonl", '{"src":"a"}', "missing key", r"expected the key 'source'; found 'src'\. Give"),
        ("a.jsonl", '{"source":"a","target":[]}', "empty target", r"target must hold text; got \["),
        (
            "a.jsonl",
            '{"source":null,"target":"b"}',
            "empty source",
            "source must hold text; got null",
        ),
        ("a.jsonl", '{"source":"a","references":[]}', "empty target", "references must hold text"),
        ("a.jsonl", '{"source":3,"target":"b"}', "not text", r"source must be text; got 3\."),
    ],
)
def test_a_bad_line_is_named_or_skipped_and_counted(write, name, line, reason, message):
    data = GOOD[name].encode() + (line if isinstance(line, bytes) else line.encode())
    path = write(name, data)
    with pytest.raises(DataError, match=rf"{name}:2: {message}"):
        list(read_pairs(path))
    bad = BadLines()
    assert sides(read_pairs(path, on_bad_line="skip", bad_lines=bad)) == [("a", "b")]
    assert bad.counts == {reason: 1}


def test_columns_chosen_must_be_there_on_every_line(write):
    path = write("a.tsv", "a\tb\tx\nc\td\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: expected 3 columns, found 2\."):
        list(read_pairs(path, layout=PairLayout(columns=(1, 2))))
    with pytest.raises(DataError, match=r"a\.tsv:1: expected 4 columns, found 3\."):
        list(read_pairs(path, layout=PairLayout(columns=(1, 4))))
    cure = r"first: --set 'data\.columns=\[1,2\]'"
    with pytest.raises(DataError, match=rf"a\.tsv:1: expected 9 columns, found 3\. Say .* {cure}"):
        list(read_pairs(path, layout=PairLayout(columns=(1, 9))))
    with pytest.raises(DataError, match=rf"a\.tsv:1: expected 2 columns, found 3\. Say .* {cure}"):
        list(read_pairs(path))


@pytest.mark.parametrize("header", ["English sentence\tChinese sentence", "text_en\ttext_zh"])
def test_a_header_of_several_known_words_is_no_pair(write, header):
    path = write("a.tsv", f"{header}\tx\nI\t我\ty\n")
    assert sides(read_pairs(path, layout=PairLayout(columns=(2, 1)))) == [("我", "I")]
    path = write("b.tsv", f"{header}\nI\t我\n")
    assert sides(read_pairs(path)) == [("I", "我")]
    path = write("c.tsv", f"{header}s\nI\t我\n")
    assert len(sides(read_pairs(path))) == 2


def test_an_empty_side_names_its_own_file(write):
    source, target = write("a.en", "x\ny\n"), write("a.de", "x\n\n")
    with pytest.raises(DataError, match=r"a\.de:2: the target is empty"):
        list(read_pairs(source, target))


def test_blank_lines_are_no_pairs(write):
    rows = {"a.tsv": "\na\tb\n\nc\td\n\n", "a.jsonl": '{"source": "a", "target": "b"}\n\n'}
    sources = {name: [pair.source for pair in read_pairs(write(name, rows[name]))] for name in rows}
    assert sources == {"a.tsv": ["a", "c"], "a.jsonl": ["a"]}
    sides = write("a.en", "a\n\nb\n\n"), write("a.de", "c\n\nd\n")
    assert [(pair.source, pair.target) for pair in read_pairs(*sides)] == [("a", "c"), ("b", "d")]


def test_a_file_of_bad_lines_only_is_reported_without_those_of_another(write):
    bad = BadLines()
    list(read_pairs(write("train.tsv", "a\tb\nc\n"), on_bad_line="skip", bad_lines=bad))
    message = r"got only lines that cannot be used \(columns: 2\)\. .*test\.tsv:1: expected"
    with pytest.raises(DataError, match=message):
        list(read_pairs(write("test.tsv", "a\nb\n"), on_bad_line="skip", bad_lines=bad))
    assert bad.counts == {"columns": 3}
    with pytest.raises(DataError, match="must hold sentence pairs; got an empty file"):
        list(read_pairs(write("valid.tsv", ""), on_bad_line="skip", bad_lines=bad))


def test_an_unknown_ending_lists_the_known_ones(write):
    with pytest.raises(SettingError, match=r"the ending of .*a\.xml must be one of \.csv, .*\.tsv"):
        list(read_pairs(write("a.xml", "a,b\n")))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((1,), r"columns must name .* target's column; got 1 alone\. Name both, .*: --set 'data"),
        ((0, 1), r"columns must be at least 1; got \[0, 1\]"),
        ((1, 1), r"columns must differ from each other; got \[1, 1\]\. Name both, the"),
        ((1, "b"), r"columns must all be numbers, or all names; got \[1, 'b'\]"),
    ],
)
def test_layouts_that_cannot_be_are_refused(columns, message):
    with pytest.raises(SettingError, match=message):
        PairLayout(columns=columns)


@pytest.mark.data
def test_multi30k_with_its_tab_and_no_break_spaces(corpora):
    folder = corpora / "multi30k"
    pairs = list(read_pairs(folder / "train.en.gz", folder / "train.de.gz"))
    assert len(pairs) == 29_000
    assert not any("\t" in pair.target or "\u00a0" in pair.target for pair in pairs)
