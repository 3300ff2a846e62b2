"""Tables of text: CSV, headers, and columns by number or by name, for every reader of them."""

import csv
import json

import pytest

from regard.errors import DataError
from regard.text import BadLines, PairLayout, read_lines, read_pairs
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import Line
from regard.text.reading.records import read_records
from regard.text.reading.tables import Field, csv_rows, read_table, table_of
from regard.text.reading.tagged import read_tagged, read_words

LABELLED = [Field("text", 1), Field("label", 2)]


def records(path, fields=LABELLED):
    return [(one["text"], one["label"]) for one, _ in read_records(path, fields)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Good.,1\nBad.,0\n"),
        ("a.csv", '"Good.",1\r\n"Bad.",0\r\n'),
        ("a.csv", "Good.;1\nBad.;0\n"),
        ("a.csv", "label,review\n1,Good.\n0,Bad.\n"),
        ("a.tsv", "sentence\tlabel\nGood.\t1\nBad.\t0\n"),
        ("a.tsv", "id\tLabel\tText\n7\t1\tGood.\n8\t0\tBad.\n"),
        ("a.csv", "\ufeff标签,评论\n1,Good.\n0,Bad.\n"),
        ("a.jsonl", '{"sentence": "Good.", "label": 1}\n{"sentence": "Bad.", "label": 0}\n'),
    ],
)
def test_what_a_header_calls_text_and_label_is_found_and_is_no_example(write, name, text):
    assert records(write(name, text)) == [("Good.", "1"), ("Bad.", "0")]


def test_columns_and_keys_go_by_any_name(write):
    fields = [Field("text", "what they wrote"), Field("label", "stars")]
    table = write("a.csv", "stars,what they wrote\n5,Fine\n")
    lines = write("a.jsonl", json.dumps({"stars": 5, "what they wrote": "Fine"}))
    assert records(table, fields) == records(lines, fields) == [("Fine", "5")]
    with pytest.raises(DataError, match=r"a.csv:1: there is no column 'star' .* mean 'stars'\?"):
        records(table, [Field("text", 2), Field("label", "star")])
    with pytest.raises(DataError, match=r"expected the key 'star'; found .*--set data.label=KEY"):
        records(lines, [Field("text", "stars"), Field("label", "star")])


def test_numbers_that_were_chosen_hold_whatever_the_header_says(write):
    path = write("a.tsv", "text\ttranslation\tlabel\nGut\tGood\t1\n")
    assert records(path) == [("Gut", "1")] == records(path, [Field("text", 1), Field("label", 3)])
    fixed = [Field("text", 2, is_fixed=True), Field("label", 3, is_fixed=True)]
    assert records(path, fixed) == [("Good", "1")]
    message = r"a\.tsv:1: there is no column 9 for the label\. There are 3: text, tr"
    with pytest.raises(DataError, match=message):
        records(path, [Field("text", 1), Field("label", 9, is_fixed=True)])


def test_rows_that_are_no_header_stay(write):
    path = write("a.tsv", "The label\tgood\nA text\tbad\n")
    assert records(path) == [("The label", "good"), ("A text", "bad")]


def test_cells_of_csv_hold_commas_quotes_and_line_ends(write):
    path = write("a.csv", '"One, ""two""\n\nthree",1\nlast,2\n')
    rows = list(read_table(path, LABELLED).lines)
    assert [row.text for row in rows] == ['One, "two" three\t1', "last\t2"]
    assert [row.where for row in rows] == [f"{path}:1", f"{path}:4"]


ROWS = [f"row {n},+" for n in range(20)]


@pytest.mark.parametrize(
    ("stray", "row"),
    [
        (['"a stray quote,+'], 21),
        (['"a stray quote,+', '"with, a comma",-'], 21),
        (['+,"a stray quote', '-,"with, a comma"'], 21),
        (['"a stray quote,+', "fine,-", 'a 5" pipe,-', '"one, ""two""",+'], 21),
        (["fine,-", '"a stray quote,+', 'the last one",-,x'], 22),
    ],
)
def test_a_quote_that_does_not_close_spoils_its_own_row_only(write, stray, row):
    path = write("a.csv", "\n".join([*ROWS, *stray, *ROWS]))
    with pytest.raises(DataError, match=rf"a.csv:{row}: a quote opens in this row and does not cl"):
        records(path)
    bad = BadLines()
    records_read = list(read_records(path, LABELLED, on_bad_line="skip", bad_lines=bad))
    wrong_width = sum(line.endswith(",x") for line in stray)
    assert (len(records_read), bad.total) == (39 + len(stray) - wrong_width, 1 + wrong_width)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\r\ntext;label\r\nGood, really;1\r\n",
        "text;label\nGood, really;1\n",
        "text|label\nGood, really|1\n",
        '"text"\t"label"\n"Good, really"\t"1"\n',
        'text,label\n"Good, really", "1"\n',
        "\n\ntext;label;;\n\nGood, really;1;;\n;;;\n\n",
        "text;label\nGood, really;1;;\n",
    ],
)
def test_csv_is_read_as_spreadsheets_write_it(write, text):
    assert records(write("a.csv", text)) == [("Good, really", "1")]


def test_quotes_within_cells_are_preserved(write):
    path = write("a.csv", 'text,label\n"Great" tea,1\n"Say \\"no, no\\"",0\na 5" pipe,1\n')
    assert records(path) == [('"Great" tea', "1"), ('Say "no, no"', "0"), ('a 5" pipe', "1")]


def test_cells_may_hold_carriage_returns_and_be_long():
    csv.field_size_limit(2**17)  # as in a new process
    assert list(csv_rows([])) == list(table_of([], ".csv", LABELLED).lines) == []
    lines = [Line("text,label", "a:1"), Line("a\rb,1", "a:2"), Line(f"{'x' * 2**18},0", "a:3")]
    assert [len(row.text.split("\t")) for row in csv_rows(lines)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("en,zh\nHello,你好\n", ()),
        ("id,english,chinese\n1,Hello,你好\n", ()),
        ("target,source\n你好,Hello\n", ()),
        ("zhongwen,yingwen\n你好,Hello\n", ("yingwen", "zhongwen")),
        ("Hello,你好\n", ()),
    ],
)
def test_pairs_are_read_by_their_header(write, text, columns):
    path = write("a.csv", text)
    pairs = list(read_pairs(path, layout=PairLayout(columns=columns)))
    assert [(pair.source, pair.target) for pair in pairs] == [("Hello", "你好")]


def test_tagged_words_are_read_by_their_header(write):
    text = "token\tner\nAnn\tB-PER\n\nruns\tO\n"
    for path in (write("a.conll", text), write("a.csv", text.replace("\t", ","))):
        sentences = [(sentence.words, sentence.tags) for sentence in read_tagged(path)]
        assert sentences == [(("Ann",), ("B-PER",)), (("runs",), ("O",))]
    lines = write("a.jsonl", '{"words": ["Ann"], "ner_tags": ["B-PER"]}\n')
    assert [sentence.tags for sentence in read_tagged(lines)] == [("B-PER",)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.conll", "Ann\tB-PER\nruns\tO\n\nYes\tO\n"),
        ("a.conll", "Ann\nruns\n\nYes\n"),
        ("a.csv", "word,tag\nAnn,B-PER\nruns,O\n\nYes,O\n"),
        ("a.conllu", "# text = x\n1\tAnn\t_\n2-3\tdont\t_\n2\truns\t_\n\n1\tYes\t_\n"),
    ],
)
def test_words_without_tags_are_read_to_be_tagged(write, name, text):
    path = write(name, text)
    sentences = read_words(read_lines(path), text_suffix(path), Field("word", 1))
    assert [(sentence.words, sentence.tags) for sentence in sentences] == [
        (("Ann", "runs"), None),
        (("Yes",), None),
    ]
