import gzip
import json
from pathlib import Path

import pytest
import zstandard

from regard.errors import DataError, SettingError
from regard.text import BadLines, decode_lines, read_lines
from regard.text.reading import forms, opening
from regard.text.reading.encodings import GuessedEncodingWarning, encoded_as
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import readable

TEXT = "\ufeff我爱中国。\r\nno end of\u2028a line\x85here\x0b\x0c\x1c\n\nlast"
LINES = ["我爱中国。", "no end of\u2028a line\x85here\x0b\x0c\x1c", "", "last"]


def zstd(data):
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress), ("a.txt.zst", zstd)]
)
def test_lines_end_with_line_feeds_only(name, pack, write):
    path = write(name, pack(TEXT.encode()))
    lines = list(read_lines(path))
    assert [line.text for line in lines] == LINES
    assert lines[3].where == f"{path}:4"


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zst", zstd)])
def test_compressed_files_may_be_concatenated(name, pack, write):
    path = write(name, pack(b"one\ntw") + pack(b"o\n") + pack(b""))
    assert [line.text for line in read_lines(path)] == ["one", "two"]


def test_a_zstd_file_larger_than_a_block_is_read_whole(write):
    lines = [f"line {number} " + "x" * 100 for number in range(50_000)]
    path = write("a.zst", zstd("\n".join(lines).encode()))
    assert [line.text for line in read_lines(path)] == lines


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.zst", zstd)])
@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
def test_a_damaged_compressed_file_is_named(name, pack, damage, write):
    data = pack(b"".join(b"%d\n" % number for number in range(10_000)))
    broken = {"cut": data[: len(data) // 2], "changed": data[:20] + b"zzzz" + data[24:]}
    path = write(name, broken.get(damage, b"plain text\n"))
    with pytest.raises(DataError, match=r"a\.\w+ must be a whole compressed file; got: .*damaged"):
        list(read_lines(path))


def test_a_missing_file_offers_the_nearest(write, tmp_path):
    write("train.tsv.gz", "")
    message = r"train\.tsv must exist; it does not\. Did you mean .*\.gz"
    with pytest.raises(DataError, match=message):
        list(read_lines(tmp_path / "train.tsv"))
    with pytest.raises(DataError, match=r"There is no folder .*nowhere\."):
        list(read_lines(tmp_path / "nowhere" / "train.tsv"))
    with pytest.raises(DataError, match="must be a readable file; got: Is a directory"):
        list(read_lines(tmp_path))


def test_bad_lines_keep_three_messages_of_each_reason():
    bad = BadLines()
    for number in range(5):
        bad.add("columns", f"line {number}")
    bad.add("empty source", "line 9")
    assert bad.total == 6
    assert bad.counts == {"columns": 5, "empty source": 1}
    assert bad.examples["columns"] == ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize(("name", "pack"), [("a.csv", bytes), ("a.csv.gz", gzip.compress)])
def test_a_file_in_gbk_is_read_with_a_warning_that_says_so(write, name, pack):
    path = write(name, pack("评论,标签\n我爱中国。,好\n".encode("gbk")))
    with pytest.warns(GuessedEncodingWarning, match=r"is read as GB18030, in which it has '评论,"):
        assert [line.text for line in read_lines(path)] == ["评论,标签", "我爱中国。,好"]


def test_lines_of_utf8_that_are_damaged_are_no_gbk(write):
    lines = ["我爱中国。".encode(), "我爱".encode()[:-1], "北京".encode("gbk")]
    path = write("a.txt", b"\n".join(lines))
    assert [line.problem is None for line in read_lines(path)] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "encoding", "setting"),
    [
        ("中文\nend", "utf-16", None),
        ("中文\nend", "utf-32", None),
        ("one\r\ntwo", "utf-16-le", None),
        ("one\r\ntwo", "utf-16-be", None),
        ("中文\nend", "utf-8", "utf-16"),
        ("中文\nend", "utf-16-le", "utf-16"),
        ("naïve\nend", "cp1252", "latin-1"),
        ("中文\nend", "big5", "Big5"),
        ("中文\nend", "utf-8", "gbk"),
    ],
)
def test_a_file_in_another_encoding_is_read(write, text, encoding, setting):
    path = write("a.txt", text.encode(encoding))
    with encoded_as(setting):
        assert [line.text for line in read_lines(path)] == text.split()
        piped = list(decode_lines(text.encode(encoding).splitlines(), "stdin"))
    assert setting in (None, "utf-16") or piped[0].text == text.split()[0]


def test_an_encoding_that_nobody_knows_is_refused():
    with pytest.raises(SettingError, match=r"encoding must be one that Python knows, .* got 'gkb'"):
        encoded_as("gkb").__enter__()


def test_carriage_returns_end_lines_where_nothing_else_does(write):
    contents = [b"one\rtwo\r", b"one\rtwo\nend\r\n", "一\r二".encode("utf-16")]
    lines = [[line.text for line in read_lines(write("a.txt", each))] for each in contents]
    assert lines == [["one", "two"], ["one\rtwo", "end"], ["一", "二"]]


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"])
def test_a_workbook_is_refused_with_what_to_do(write, start):
    path = write("a.xlsx", start + b"\0" * 20)
    with pytest.raises(DataError, match=r"a.xlsx must be text; got .*workbook.* CSV UTF-8"):
        list(read_lines(path))
    with pytest.raises(DataError, match=r"CSV UTF-8"):
        text_suffix(path)


RECORDS = [{"text": "我", "label": "a"}, {"text": "[b", "label": "b"}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RECORDS),
        "\ufeff" + json.dumps(RECORDS, indent=2),
        json.dumps(RECORDS)[:-1] + ",\n]\n",
        json.dumps({"version": 1, "data": RECORDS}, indent=1),
        "\n".join(json.dumps(each, indent=2) for each in RECORDS),
        "\n\n".join(map(json.dumps, RECORDS)),
        json.dumps({"reviews": RECORDS}),
        json.dumps({"rows": [{"row_idx": n, "row": row} for n, row in enumerate(RECORDS)]}),
        json.dumps({name: {n: row[name] for n, row in enumerate(RECORDS)} for name in RECORDS[0]}),
        json.dumps({"columns": ["text", "label"], "data": [[*row.values()] for row in RECORDS]}),
        json.dumps({f"id{n}": row for n, row in enumerate(RECORDS)}),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson", "a.txt"])
def test_objects_of_json_are_read_however_they_stand(write, name, text):
    path = write(name, text)
    assert text_suffix(path) == ".jsonl"
    lines = [line.text for line in read_lines(path) if line.text]
    assert list(map(json.loads, lines)) == RECORDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},\n {"b": }]', r"a.json:2: not JSON: Expecting value"),
        ('[{"a": 1}', r"a.json: not JSON: its list does not end"),
        ('{\n"a": ' + "[" * 100_000, r"nested too deeply"),
        ('[{"a": ' + "9" * 5001 + "}]", r"a number of thousands of digits"),
    ],
)
def test_json_that_does_not_parse_is_named(write, text, message):
    path = write("a.json", text)
    with pytest.raises(DataError, match=message):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.json", '{"data": [{"paragraphs": []}]}', ".json"),
        ("a.txt", "__label__x a\n__label__y b\n", ".jsonl"),
        ("a.txt", "I see.\tIch sehe.\tby hand\n" * 3, ".tsv"),
        ("a.txt", "I was glad;joy\nI was sad;sadness\n" * 3, ".csv"),
        ("a.txt", "Well, it rained.\nWe stayed, of course, in.\nThe end.\n", ".txt"),
        ("a.train", "EU NNP B-ORG\nsays VB O\n\nIt PR O\nis VB O\n\n", ".conll"),
        ("a.bio", "Ann\tB-PER\n", ".conll"),
        ("a.conll", "# text = Go\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n", ".conllu"),
        ("a.xml", "x", ".xml"),
        ("a.txt", "one\rtwo three\nfour\nfive\n", ".txt"),
        ("a.txt", f"one, two\nfour\n{'x' * 2**18}\n", ".txt"),
    ],
)
def test_first_lines_say_the_form_where_the_name_does_not(write, name, text, form):
    path = write(name, text)
    assert text_suffix(path) == form


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.json.zst", "many.json"])
def test_what_would_be_read_whole_is_of_bounded_size(write, name, monkeypatch):
    monkeypatch.setattr(opening, "LONGEST", 1 << 20)
    monkeypatch.setattr(forms, "LONGEST", 1 << 20)
    end = "\n" if name == "many.json" else ""
    text = ("[" + end + ('{"text": "a"},' + end) * 80_000 + "{}]").encode()
    pack = {".gz": gzip.compress, ".zst": zstd}.get(Path(name).suffix, bytes)
    path = write(name, pack(text))
    with pytest.raises(DataError, match=r"less than 1 MiB; got .* which is JSONL. Convert"):
        list(read_lines(path))


def test_a_line_in_another_encoding_says_which_it_may_be():
    (line,) = decode_lines(["我爱中国".encode("gbk")], "stdin")
    with pytest.raises(DataError, match=r"stdin:1: not UTF-8 \(byte .* GB18030 would read '我爱"):
        readable(line)
