"""Tables of numbers, and whatever may be wrong with one: the file, the line and the cure."""

import pytest

from regard.errors import DataError
from regard.text import BadLines
from regard.text.reading.lines import BLANK
from regard.text.reading.points import read_points


def test_a_header_names_the_columns_and_others_are_left_out(write):
    path = write("table.csv", 'rent,"area, m²",floor\n800,50,2\n\n"900", 60,3\n')
    points = list(read_points(path, inputs=["floor", "area, m²"], target="rent"))
    assert [point.inputs for point in points] == [(2.0, 50.0), (3.0, 60.0)]
    assert [point.target for point in points] == [800.0, 900.0]
    assert points[1].names == ("floor", "area, m²")
    assert points[1].where == f"{path}:4"


def test_without_a_header_columns_have_numbers_and_the_last_is_the_target(write):
    path = write("table.tsv", "1\t2\t3\n4\t5\t6e1\n")
    assert [(p.inputs, p.target) for p in read_points(path)] == [((1, 2), 3), ((4, 5), 60)]
    (first, _) = read_points(path, inputs=["3"], target="1")
    assert (first.inputs, first.target, first.names) == ((3,), 1, ("3",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n1,high\n", r"table\.csv:3: y must be a number; got 'high'\."),
        ("1,2\n1,x\n", r"table\.csv:2: column 2 must be a number; got 'x'\."),
        ('x,y\n1,"2,500"\n', r"table\.csv:2: y must .*; got '2,500'\. Write 2500 or 2\.5, which"),
        ("x,y\n1,\n", r"table\.csv:2: y must be a number; the cell is empty\. Leave the row out"),
        ("x,y\n1,nan\n", r"table\.csv:2: y must be a number; got 'nan'\."),
        ("x,y\n1,1_0\n", r"table\.csv:2: y must be a number; got '1_0'\."),
        ("x,y\n1\n", r"table\.csv:2: expected 2 columns \(x, y\), found 1\."),
        ("x,3\n1,2\n", r"table\.csv:1: the first line must be all names or all numbers; got 'x'"),
        ("x,x\n1,2\n", r"table\.csv:1: columns must have different names; got 'x' twice\."),
        ("x\n1\n", r"table\.csv:1: there must be an input column beside the target 'x'"),
        ('x,y\n1,"2\n', r"table\.csv:2: a quote opens in this row and"),
        ("x,y\n", r"table\.csv must hold rows of numbers; got none that can be used\."),
    ],
)
def test_errors_name_their_position(text, message, write):
    with pytest.raises(DataError, match=message):
        list(read_points(write("table.csv", text)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("table.tsv", "x\ty\n1,5\t1,250\n2\t1.000\n"),
        ("table.csv", "x;y\n1,5;1,250\n2;1.000\n"),
        ("table.csv", 'x,y\n"1,5","1,250"\n2,"1.000,0"\n'),
    ],
)
def test_a_comma_may_stand_for_the_point_of_numbers(name, text, write):
    points = read_points(write(name, text))
    assert [(*point.inputs, point.target) for point in points] == [(1.5, 1.25), (2, 1000)]


def test_blank_lines_between_rows_are_counted(write):
    left_out = BadLines()
    path = write("table.csv", "x,y\n\n1,2\n\n\n3,4\n\n")
    assert len(list(read_points(path, bad_lines=left_out))) == 2
    assert left_out.examples == {BLANK: [f"{path}:{line}" for line in (2, 4, 5)]}


def test_a_missing_column_is_named_with_the_nearest_one(write):
    path = write("table.csv", "area,rent\n1,2\n")
    message = r"csv:1: there is no column 'rant', which data\.target names\. Did you mean 'rent'\?"
    with pytest.raises(DataError, match=message):
        list(read_points(path, target="rant"))
    message = r"there is no column '9', which data\.inputs names\. There are area, rent\."
    with pytest.raises(DataError, match=message):
        list(read_points(path, inputs=["9"]))


def test_bad_lines_are_left_out_and_counted(write):
    bad = BadLines()
    path = write("table.csv", "x,y\n1,2\n1,high\n3\n5,6\n")
    points = list(read_points(path, on_bad_line="skip", bad_lines=bad))
    assert [point.inputs for point in points] == [(1,), (5,)]
    assert bad.total == 2


@pytest.mark.parametrize(
    "text", ["sep=;\nx;y\n1;2\n", ",x,y\n0,1,2\n", "Unnamed: 0,x,y\n0,1,2\n\n", "x,y\n1,2,,\n"]
)
def test_tables_of_spreadsheets_and_of_pandas_are_read(write, text):
    (point,) = read_points(write("a.csv", text))
    assert (point.inputs, point.target, point.names) == ((1.0,), 2.0, ("x",))


def test_columns_of_numbers_are_read_next_to_dates_without_a_header(write):
    path = write("prices.csv", "2024-01-01,3,4.5\n2024-01-02,5,6.5\n")
    points = read_points(path, inputs=["2"], target="3")
    assert [(point.inputs, point.target) for point in points] == [((3.0,), 4.5), ((5.0,), 6.5)]
    with pytest.raises(DataError, match=r"must be all names or all numbers; got '2024-01-01'"):
        list(read_points(path))


def test_percents_and_prices_are_numbers(write):
    path = write("a.csv", "Growth %,Revenue,y\n7%,$1200.50,3 %\n-5.5 %,€99,12€\n")
    points = [(*point.inputs, point.target) for point in read_points(path)]
    assert points == [(7, 1200.5, 3), (-5.5, 99, 12)]
