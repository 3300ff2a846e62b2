import json
import sys
from datetime import date

import pytest

from regard.errors import DataError, SettingError
from regard.text import read_lines
from regard.text.reading.forms import read_rows

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

TABLE = pyarrow.table(
    {"text": ["雨", None, "two\nlines"], "day": [date(2024, 1, 2)] * 3, "count": [1, 2, 3]}
)
ROWS = [
    {"text": "雨", "day": "2024-01-02", "count": 1},
    {"text": None, "day": "2024-01-02", "count": 2},
    {"text": "two\nlines", "day": "2024-01-02", "count": 3},
]


def write_parquet(path):
    parquet.write_table(TABLE, path)


def write_stream(path):
    with ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)


def write_feather(path):
    with ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.parquet", write_parquet), ("a.arrow", write_stream), ("a.feather", write_feather)],
)
def test_rows_are_objects_in_order(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    assert [json.loads(line) for line in read_rows(path)] == ROWS


def test_rows_are_lines_that_know_their_places(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    lines = list(read_lines(tmp_path / "a.parquet"))
    assert [line.where for line in lines] == [f"{tmp_path / 'a.parquet'}:{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("name", "write"), [("a.parquet", write_parquet), ("a.arrow", write_stream)]
)
def test_a_table_cut_short_is_named(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=f"{name} must be a whole .* It is damaged or cut short"):
        list(read_lines(path))


def test_a_table_that_is_missing_is_missing_as_any_file(tmp_path):
    with pytest.raises(DataError, match=r"b\.parquet must exist; it does not"):
        list(read_lines(tmp_path / "b.parquet"))


def test_without_pyarrow_what_to_install_is_said(tmp_path, monkeypatch):
    write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingError, match=r"pip install 'regard\[parquet\]'"):
        list(read_lines(tmp_path / "a.parquet"))
