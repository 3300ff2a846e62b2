import json
import sys
from datetime import date

import pytest

from regard.errors import DataError, SettingError
from regard.text import read_lines

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


def write_table(path):
    """Write the table as Parquet, a stream or a Feather file, in parts of two rows."""
    if path.suffix == ".parquet":
        parquet.write_table(TABLE, path)
        return
    with (ipc.new_stream if path.suffix == ".arrow" else ipc.new_file)(path, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=2)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_rows_are_lines_of_objects_in_order(tmp_path, name):
    path = tmp_path / name
    write_table(path)
    lines = list(read_lines(path))
    assert [json.loads(line.text) for line in lines] == ROWS
    assert [line.where for line in lines] == [f"{path}:{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_table_cut_short_is_named(tmp_path, name):
    path = tmp_path / name
    write_table(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=f"{name} must be a whole .* It is damaged or cut short"):
        list(read_lines(path))


def test_without_pyarrow_what_to_install_is_said(tmp_path, monkeypatch):
    write_table(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingError, match=r"pip install 'regard\[parquet\]'"):
        list(read_lines(tmp_path / "a.parquet"))
