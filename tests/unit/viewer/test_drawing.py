"""Pictures in documents, and drawings for a terminal."""

from dataclasses import replace

import numpy as np
import pytest

from regard.errors import DataError, ShapeError
from regard.viewer import (
    Document,
    Example,
    Image,
    Importance,
    Prediction,
    Token,
    draw_examples,
    draw_image,
    draw_text,
    in_patches,
)
from regard.viewer.drawing import draw_answer

GREY = Image(pixels=(((0.0,), (1.0,)), ((0.5,), (0.0,))), boxes=(None, (0, 0, 1, 2), (1, 0, 1, 2)))
TOKENS = tuple(Token(text=t, start=2 * n, end=2 * n + 1) for n, t in enumerate("abc"))
EXAMPLE = Example(
    source="a b c",
    output="7",
    source_tokens=TOKENS,
    output_tokens=(),
    answer=Prediction(labels=(("7", 0.75),), values=(0.5, 0.1, 0.4), measure="looked at"),
    image=GREY,
)


def test_a_document_with_a_picture_comes_back():
    document = Document(title="t", task="image", model="m", examples=(EXAMPLE,))
    assert Document.from_json(document.to_json()) == document
    colour = replace(GREY, pixels=(((0.0, 0.5, 1.0),),), boxes=(None, (0, 0, 1, 1), None))
    document = replace(document, examples=(replace(EXAMPLE, image=colour),))
    assert Document.from_json(document.to_json()) == document


def test_parts_are_drawn_next_to_the_picture_by_their_weight():
    pixels = np.repeat(np.repeat([[0.0, 1.0], [0.5, 0.0]], 64, 0), 64, 1)[..., None]
    image, names = in_patches(pixels, (64, 64))
    assert names == ["1,1", "1,2", "2,1", "2,2"]
    drawn = draw_image(image, [0.0, 0.2, 0.4, 0.0]).splitlines()
    assert {len(line) for line in drawn} == {2 * 32 + 3 + 2 * 32}
    assert drawn[15] == drawn[0] == 32 * " " + 32 * "█" + "   " + 32 * " " + 32 * "▒"
    assert draw_image(GREY) == "  ██\n▒▒  "
    left, right = draw_image(GREY, [0.0, 0.2, 0.4]).splitlines()
    assert (left, right) == ("  ██   ▒▒▒▒", "▒▒     ████")


def test_an_answer_draws_its_picture():
    drawn = draw_answer(EXAMPLE)
    assert drawn.startswith("  ██   ")
    assert "7  " in drawn
    assert drawn.endswith("beside the picture, the brighter a part: looked at")


def test_what_spoke_for_a_target_and_against_it_is_listed():
    answer = {"target": "cat", "against": "dog"}
    signed = Importance(method="leave one out", values=(0.25, -1.5, 0.0), **answer)
    rollout = Importance(method="rollout", values=(0.5, 0.3, 0.2), **answer)
    example = replace(EXAMPLE, answer=None, image=None, importances=(signed, rollout))
    drawn = draw_examples([example]).splitlines()[2:]
    assert drawn == ["cat (+) or dog (−), leave one out: b -1.5, a +0.25, c +0"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pixels": ()}, "pixels must be rows of equal length"),
        ({"pixels": (((0.0,),), ())}, "pixels must be rows of equal length"),
        ({"pixels": (((0.0, 1.0), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.0)))}, "of one number each"),
        ({"pixels": (((0.0,), (2.0,)), ((0.5,), (0.0,)))}, "between 0 and 1"),
        ({"boxes": (None, (0, 0, 3, 2), None)}, "boxes must lie within 2 × 2 pixels"),
    ],
)
def test_pictures_that_are_none(changed, message):
    with pytest.raises(DataError, match=rf"image\..*{message}"):
        replace(GREY, **changed)


def test_every_token_has_a_box_or_none():
    with pytest.raises(DataError, match=r"image.boxes must be one for each of 3 .* got 2"):
        replace(EXAMPLE, image=replace(GREY, boxes=(None, None)))


def test_columns_line_up_under_wide_characters():
    drawn = draw_text([[0.97, 0.03, 0.0]], ["我", "北京大学的", "x"], ["love"])
    assert drawn.splitlines() == ["      我      北京大学的  x", "love  ██ .97     .03           ·"]


def test_names_of_rows_line_up_whatever_they_are_written_in():
    drawn = draw_text([[1.0], [0.5]], ["a"], ["中国", "e\u0301"])
    assert drawn.splitlines() == ["      a", "中国  ██ 1.0", "   e\u0301  ▒▒ .50"]


def test_shade_grows_with_the_weight():
    lines = [draw_text([[w]], ["a"], ["b"]).splitlines()[1] for w in (0.1, 0.2, 0.5, 0.7, 0.9)]
    assert [line[3:5] for line in lines] == ["  ", "░░", "▒▒", "▓▓", "██"]


def test_wide_map_continues_in_a_second_block():
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
