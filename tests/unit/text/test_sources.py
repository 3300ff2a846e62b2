import json

import numpy as np
import pytest

from regard.errors import DataError
from regard.text.reading.encodings import GuessedEncodingWarning
from regard.text.reading.forms import text_suffix
from regard.text.reading.lines import read_lines
from regard.text.reading.records import read_records
from regard.text.reading.sources import rows_of, shards, write_rows
from regard.text.reading.tables import Field


def fill(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("", encoding="utf-8")
    return folder


def names(files):
    return [file.name for file in files]


def test_a_file_with_signs_of_a_pattern_in_its_name_stands_for_itself(tmp_path):
    fill(tmp_path, "pairs[1].tsv", "pairs1.tsv")
    assert names(shards(tmp_path / "pairs[1].tsv")) == ["pairs[1].tsv"]
    assert shards(tmp_path / "none.tsv") == [tmp_path / "none.tsv"]


@pytest.mark.parametrize(
    ("files", "path", "message"),
    [
        ((), "*.tsv", r"\*\.tsv must fit some file; it fits none"),
        (("_SUCCESS", ".crc"), "", "must hold files of text; got an empty folder"),
        (
            ("a.tsv.gz", "README.md"),
            "",
            r"one kind; got the endings \.md, \.tsv\.gz\. .*\*\.tsv\.gz",
        ),
        (("a.tsv", "a.parquet"), "", r"endings \.parquet, \.tsv\. .*\*\.tsv"),
        (("a.tsv",), "../shardz", r"shardz must exist; it does not\. Did you mean .*shards\?"),
    ],
)
def test_what_is_no_folder_of_text_is_named(tmp_path, files, path, message):
    with pytest.raises(DataError, match=message):
        shards(fill(tmp_path / "shards", *files) / path)


def test_a_pattern_reaches_into_folders(tmp_path):
    fill(tmp_path / "a", "2.tsv")
    fill(tmp_path / "b", "1.tsv", "1.txt")
    assert names(shards(tmp_path / "**" / "*.tsv")) == ["2.tsv", "1.tsv"]


@pytest.mark.parametrize("pattern", ["", "*", "train-*.tsv"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_numbered_file_that_is_missing_is_named(tmp_path, pattern, first):
    every = [f"train-{number:05}-of-00003.tsv" for number in range(first, first + 3)]
    fill(tmp_path, *every)
    assert names(shards(tmp_path / pattern)) == every
    (tmp_path / every[1]).unlink()
    with pytest.raises(DataError, match=f"all 3 files .* {every[1]} is missing"):
        shards(tmp_path / pattern)


@pytest.mark.parametrize("pattern", ["train-0000*", "train-0000[01]*", "train-0000?-of-00003.tsv"])
def test_a_pattern_for_some_numbers_matches_no_others(tmp_path, pattern):
    fill(tmp_path, "train-00000-of-00003.tsv")
    assert len(shards(tmp_path / pattern)) == 1


def test_a_saved_data_set_has_its_files_in_its_own_order(tmp_path):
    fill(tmp_path, "b.arrow", "a.arrow", "dataset_info.json")
    state = {"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert names(shards(tmp_path)) == ["b.arrow", "a.arrow"]
    (tmp_path / "a.arrow").unlink()
    with pytest.raises(DataError, match=r"files that its state\.json names; a\.arrow missing"):
        shards(tmp_path)
    (tmp_path / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{}]}))
    with pytest.raises(DataError, match="flatten_indices"):
        shards(tmp_path)


def test_saved_splits_are_found_by_what_others_call_them(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    fill(tmp_path / "validation", "a.arrow")
    state = {"_data_files": [{"filename": "a.arrow"}]}
    (tmp_path / "validation" / "state.json").write_text(json.dumps(state))
    assert shards(tmp_path, "valid") == [tmp_path / "validation" / "a.arrow"]
    with pytest.raises(DataError, match=r"split for data\.test; it holds train, validation"):
        shards(tmp_path, "test")


@pytest.mark.parametrize("name", ["data", "data/*.tsv"])
def test_a_link_to_nothing_is_named(tmp_path, name):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.tsv").touch()
    (tmp_path / "data" / "b.tsv").symlink_to("nowhere.tsv")
    with pytest.raises(DataError, match=r"b.tsv must exist; it is a link to nowhere.tsv, where no"):
        shards(tmp_path / name)


def test_a_folder_of_folders_of_texts_is_read_as_texts_with_labels(tmp_path):
    for name in ("pos", "neg", "unsup"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1_9.txt").write_text(f"It is\n{name}.\n", encoding="utf-8")
    (tmp_path / "urls.txt").touch()
    assert shards(tmp_path) == [tmp_path]
    assert text_suffix(tmp_path) == ".jsonl"
    fields = [Field("text", 1), Field("label", 2)]
    records = [tuple(record.values()) for record, _ in read_records(tmp_path, fields)]
    assert records == [("It is neg.", "neg"), ("It is pos.", "pos")]


def test_a_folder_of_texts_in_gbk_warns_once(tmp_path):
    for name in ("体育", "财经"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_bytes("今天的比赛结束了。".encode("gbk"))
    with pytest.warns(GuessedEncodingWarning) as warnings:
        texts = [json.loads(line.text)["text"] for line in read_lines(tmp_path)]
    assert (texts, len(warnings)) == (["今天的比赛结束了。"] * 2, 1)


def test_data_in_memory_becomes_rows_and_rows_a_file():
    frame = {"pixels": np.eye(2), "label": np.array([3, 4])}
    expected = [{"pixels": [1.0, 0.0], "label": 3}, {"pixels": [0.0, 1.0], "label": 4}]
    assert rows_of(frame) == rows_of(expected) == expected
    assert rows_of(([[1.0], [float("nan")]], [3, 4])) == [[1.0, 3], [None, 4]]
    assert write_rows([{"text": "Good.", "label": 1}]) == (
        ".jsonl",
        '{"text": "Good.", "label": 1}\n',
    )
    assert write_rows([["Good.", "yes"]]) == (".tsv", "Good.\tyes\n")
    assert write_rows([[0.5, 2]]) == (".jsonl", '{"x1": 0.5, "y": 2}\n')
    for data, message in (([], "got none"), ([3], "row 1 is int '3'"), (3, "must be files, rec")):
        with pytest.raises(DataError, match=message):
            rows_of(data)
