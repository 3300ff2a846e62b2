"""Tables whose cells hold objects and lists, and objects as Python prints them."""

import json

import pytest

from regard.errors import DataError
from regard.text import read_lines
from regard.text.reading.forms import text_suffix
from regard.text.reading.questions import read_questions


def records(path):
    assert text_suffix(path) == ".jsonl"
    return [json.loads(line.text) for line in read_lines(path)]


CELLS = {
    "python": ("{'text': ['It''s'], 'start': [0]}", {"text": ["Its"], "start": [0]}),
    "json": ('{"text": ["a, b"], "start": [0]}', {"text": ["a, b"], "start": [0]}),
    "numpy": (
        "{'text': array(['a b', \"c's\"], dtype=object), 'start': array([-1,\n 5], dtype=int32)}",
        {"text": ["a b", "c's"], "start": [-1, 5]},
    ),
    "words": ("['Ann' \"O'Neill\"\n 'in']", ["Ann", "O'Neill", "in"]),
    "numbers": ("[0 -1 2.5]", [0, -1, 2.5]),
}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("ending", "sign"), [("csv", ","), ("tsv", "\t")])
def test_cells_of_objects_and_lists_are_parsed(kind, ending, sign, write):
    cell, value = CELLS[kind]
    quoted = '"' + cell.replace('"', '""') + '"'
    path = write(f"a.{ending}", f"id{sign}cell\n7{sign}{quoted}\n" + f"8{sign}{quoted}\n")
    assert records(path) == [{"id": "7", "cell": value}, {"id": "8", "cell": value}]


def test_a_cell_that_breaks_off_is_a_bad_line_and_a_footnote_a_text(write):
    cells = [
        "{'text': ['a'], 'answer_start': [0]}",
        "{'text': ['a",
        "{'text': array(['a' ... 'b'])}",
    ]
    path = write("a.csv", "context,question,answers\n" + "".join(f'a,q,"{c}"\n' for c in cells))
    assert len(list(read_questions(path, on_bad_line="skip"))) == 1
    with pytest.raises(DataError, match=r"a\.csv:2: not JSON"):
        list(read_questions(path))
    row = "[1] as said,\"{'a': 1}\"\n"
    assert records(write("b.csv", f"text,more\n{row * 3}"))[0]["text"] == "[1] as said"


def test_a_table_of_objects_without_a_header_has_numbered_columns(write):
    assert records(write("a.tsv", "x\t{'a': 1}\ny\t{'a': 2}\n"))[1] == {
        "column1": "y",
        "column2": {"a": 2},
    }


def test_few_cells_in_brackets_leave_a_table_as_it_is(write):
    rows = ["text,label", "[1] said,a", "clean,b", "cold,a"]
    assert text_suffix(write("a.csv", "\n".join(rows) + "\n")) == ".csv"


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.json"])
def test_objects_as_python_prints_them_are_read(name, write):
    rows = [{"text": "it's", "label": None}, {"text": "b", "label": True}]
    assert records(write(name, "".join(f"{row!r}\n" for row in rows))) == rows


def test_a_few_rows_of_objects_make_a_table_one_of_objects(write):
    rows = ["a,"] * 9 + ['b,"[{""start"": 0, ""end"": 1, ""labels"": [""X""]}]"']
    assert text_suffix(write("a.csv", "\n".join(["text,ner", *rows]) + "\n")) == ".jsonl"
