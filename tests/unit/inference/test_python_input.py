"""Calls from Python as people type them: one text, bytes, and reports in a notebook."""

import pytest
from tests.unit.inference.conftest import letters_predictor

from regard.errors import DataError, SettingError
from regard.inference.evaluation.report import AnswerReport
from regard.training import train


def test_one_text_is_one_text():
    predictor = letters_predictor("rnn_seq2seq")
    (alone,) = predictor.translate("fade a bed")
    (listed,) = predictor.translate(["fade a bed"])
    assert alone.text() == listed.text()


@pytest.mark.parametrize("data", [b"fade", bytearray(b"fade"), [b"fade"], ("cab", b"fade")])
@pytest.mark.usefixtures("unchecked_shapes")
def test_bytes_are_refused(data):
    predictor = letters_predictor("rnn_seq2seq")
    for ask in (predictor.predict, predictor.translate):
        with pytest.raises(DataError, match=r"must be .*text.*(bytes|bytearray)"):
            ask(data)


def test_bytes_are_no_data_to_train_on(tmp_path):
    with pytest.raises(DataError, match=r"data must be text, not bytes\. Decode it"):
        train(b"fade", tmp_path / "run")


def test_texts_and_labels_by_position_are_told_the_way():
    with pytest.raises(SettingError, match=r"got list\. To train .*: train\(data=\(texts, labels"):
        train(["good", "bad"], ["yes", "no"])


def test_a_report_shows_itself_in_a_notebook():
    nothing = {"figures": (), "baselines": {}, "tables": (), "examples": ()}
    report = AnswerReport(count=1, unit="texts <a>", **nothing)
    assert report._repr_html_() == "<pre>1 texts &lt;a&gt;\n</pre>"
