import gzip
import io
import json

import pytest

from regard.errors import DataError
from regard.inference import lines as answered_lines
from regard.inference.lines import answers, predicting
from regard.tasks import recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text.reading.line_groups import arriving, grouped, groups_of
from regard.text.reading.lines import Line, decode_lines, read_lines
from regard.text.reading.tables import Field


def answered(predictor, text, *, beam_size, n_best=1, **options):
    lines = list(decode_lines(text.splitlines(keepends=True), "in"))
    decoding = predictor.recipe.decoding.changed(beam_size=beam_size, n_best=n_best)
    skips = options.pop("skip_bad_lines", False)
    answering = predicting(predictor.use, decoding=decoding, **options)
    groups = answers([lines], answering, skip_bad_lines=skips)
    return [answer for group in groups for answer in group]


def test_lines_are_handed_on_as_they_arrive():
    written = iter([b"one\ntw", b"o\n", b"three\nfour", b""])
    groups = arriving(lambda size: next(written))
    assert list(groups) == [[b"one\n"], [b"two\n"], [b"three\n"], [b"four"]]
    assert list(arriving(io.BytesIO(b"").read1)) == []


def test_many_lines_come_in_groups(tmp_path):
    lines = [b"%d\n" % number for number in range(600)]
    assert [len(group) for group in arriving(io.BytesIO(b"".join(lines)).read1)] == [256, 256, 88]
    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(b"".join(lines)))
    groups = list(grouped(read_lines(file)))
    assert [f"{line.text}\n".encode() for group in groups for line in group] == lines
    assert len(groups[0]) == 256


def test_a_line_in_is_a_line_out(predictor):
    text = "我爱中国。\n\n  \r\n😀\n".encode()
    outputs = answered(predictor, text, beam_size=2)
    assert [answer.where for answer in outputs] == ["in:1", "in:2", "in:3", "in:4"]
    assert [answer.text() for answer in outputs[1:3]] == ["", ""]
    assert outputs[0].text() == predictor.translate(["我爱中国。"], beam_size=2)[0][0].text
    assert all("\n" not in answer.text() for answer in outputs)


def test_ten_thousand_characters_are_translated_in_parts(predictor):
    (answer,) = answered(predictor, ("我" * 10_000).encode(), beam_size=1, attention=True)
    assert answer.answer.parts == 1250  # of the longest that the model was trained on
    assert answer.answer.alignment is None
    assert answer.to_dict()["parts"] == 1250


def test_attention_adds_tokens_weights_and_links(predictor):
    (answer,) = answered(predictor, "我爱你\n".encode(), beam_size=3, n_best=2, attention=True)
    members = json.loads(json.dumps(answer.to_dict()))
    assert members["source_tokens"] == ["我", "爱", "你"]
    assert len(members["n_best"]) == 2
    rows = members["attention"]
    assert len(rows) == len(members["output_tokens"])
    assert all(len(row) == 4 and sum(row) == pytest.approx(1, abs=1e-3) for row in rows)
    translation, _, links = answer.text().partition("\t")
    assert translation == answer.answer.best.text
    for link in links.split():
        source, output = map(int, link.split("-"))
        assert rows[output][source] == max(rows[output])


def test_a_line_that_is_not_utf8_is_an_error_or_an_empty_answer(predictor):
    text = "我\n".encode() + b"caf\xe9\n"
    with pytest.raises(DataError, match="in:2: not UTF-8 \\(byte 0xE9 at position 4;"):
        answered(predictor, text, beam_size=1)
    outputs = answered(predictor, text, beam_size=1, skip_bad_lines=True)
    assert outputs[0].problem is None
    assert outputs[1].problem is not None
    assert outputs[1].text() == ""
    assert "problem" in outputs[1].to_dict()


def test_the_source_is_read_from_its_column_or_key():
    def source_of(text, columns=(), ending=".jsonl"):
        data = {"columns": list(columns)}
        task = TranslationTask(recipe_from_table({"data": data}), None)
        return task.parse_line(Line(text, "in:3"), ending).source

    assert source_of('{"source": "c"}') == "c"
    assert source_of('{"zh": "c", "source": "d"}', ("zh", "en")) == "c"
    assert source_of('{"source": "d"}', ("zh", "en")) == "d"
    assert source_of("a\tb", (2, 1), "") == "a\tb"
    assert source_of("", (2, 1)) == ""
    for line in ("[", '{"source": 1}'):
        with pytest.raises(DataError, match="in:3: expected a JSON object with a text at 'source'"):
            source_of(line, (2, 1))


def until_refused(groups, message):
    """All that comes before an error."""
    outputs = []
    with pytest.raises(DataError, match=message):
        outputs.extend(each for group in groups for each in group)
    return outputs


def test_what_came_before_a_bad_line_is_answered_first(predictor):
    lines = list(decode_lines(["我\n".encode()] * 599 + [b"\xff\n"], "in"))
    groups = answers([lines[:512], lines[512:]], predicting(predictor.use))
    outputs = until_refused(groups, "in:600: not UTF-8")
    assert [answer.where for answer in outputs] == [f"in:{number}" for number in range(1, 600)]


def test_what_came_before_the_end_of_a_damaged_file_is_answered_first(tmp_path):
    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(b"".join(b"%d\n" % number for number in range(600)))[:-8])
    assert len(until_refused(grouped(read_lines(file)), "must be a whole compressed file")) == 600


def test_a_table_without_its_column_is_refused_before_any_group(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n", "utf-8")
    groups, ending = groups_of(tmp_path / "a.csv", [Field("text", "z")])
    assert ending == ".jsonl"
    with pytest.raises(DataError, match=r"a\.csv:1: there is no column 'z' for the text"):
        next(groups)


def counting(predictor, monkeypatch):
    """The number of examples in each call of the predictor."""
    counts = []
    plain = predictor.use.answer

    def noted(requests, **options):
        counts.append(len(requests))
        return plain(requests, **options)

    monkeypatch.setattr(predictor.use, "answer", noted)
    return counts


def test_what_repeats_is_answered_once(predictor, monkeypatch):
    texts = enumerate(("我", "爱", "我", "爱", ""), 1)
    inputs = [Line(text, f"in:{number}") for number, text in texts]
    expected = [
        each.text()
        for line in inputs
        for lines in answers([[line]], predicting(predictor.use))
        for each in lines
    ]
    groups = [inputs[:3], inputs[3:]]
    counts = counting(predictor, monkeypatch)
    outputs = [each for lines in answers(groups, predicting(predictor.use)) for each in lines]
    assert [each.text() for each in outputs] == expected
    assert [each.where for each in outputs] == [f"in:{number}" for number in range(1, 6)]
    assert counts == [2, 1]
    monkeypatch.setattr(answered_lines, "_CACHED", 1)
    counts.clear()
    assert [len(lines) for lines in answers(groups, predicting(predictor.use))] == [3, 2]
    assert counts == [2, 2]
