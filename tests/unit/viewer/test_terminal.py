import pytest

from regard.errors import ShapeError
from regard.viewer import draw_text


def test_columns_line_up_under_wide_characters():
    drawn = draw_text([[0.97, 0.03, 0.0]], ["我", "北京大学的", "x"], ["love"])
    assert drawn.splitlines() == [
        "      我      北京大学的  x",
        "love  ██ .97     .03           ·",
    ]


def test_names_of_rows_line_up_whatever_they_are_written_in():
    drawn = draw_text([[1.0], [0.5]], ["a"], ["中国", "e\u0301"])
    assert drawn.splitlines() == ["      a", "中国  ██ 1.0", "   e\u0301  ▒▒ .50"]


def test_shade_grows_with_the_weight():
    lines = [draw_text([[w]], ["a"], ["b"]).splitlines()[1] for w in (0.1, 0.2, 0.5, 0.7, 0.9)]
    assert [line[3:5] for line in lines] == ["  ", "░░", "▒▒", "▓▓", "██"]


def test_wide_map_goes_on_in_a_second_block():
    drawn = draw_text([[0.25] * 4], list("abcd"), ["x"], width=20)
    assert [block.split()[:2] for block in drawn.split("\n\n")] == [["a", "b"], ["c", "d"]]
    assert max(map(len, drawn.splitlines())) <= 20


def test_space_marks_and_line_ends_stay_on_the_line():
    drawn = draw_text([[1.0, 0.0]], ["▁the", "▁"], ["a\nb"])
    assert drawn.splitlines() == ["     the     ␣", "a·b  ██ 1.0       ·"]


def test_nothing_to_draw_is_no_error():
    assert draw_text([], [], []) == ""


def test_weights_that_do_not_fit_the_tokens_are_named():
    with pytest.raises(ShapeError, match=r"2 rows \(output tokens\) of 1 .* got rows of \[1\]"):
        draw_text([[1.0]], ["a"], ["b", "c"])
