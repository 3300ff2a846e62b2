"""Pictures in documents and in a terminal."""

from dataclasses import replace

import pytest

from regard.errors import DataError
from regard.viewer import Document, Example, Image, Prediction, Token, draw_image
from regard.viewer.drawing import draw_answer

GREY = Image(
    pixels=(((0.0,), (1.0,)), ((0.5,), (0.0,))),
    boxes=(None, (0, 0, 1, 2), (1, 0, 1, 2)),
)
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


def test_parts_are_drawn_beside_the_picture_by_their_weight():
    assert draw_image(GREY) == "  ██\n▒▒  "
    left, right = draw_image(GREY, [0.0, 0.2, 0.4]).splitlines()
    assert (left, right) == ("  ██   ▒▒▒▒", "▒▒     ████")


def test_an_answer_draws_its_picture():
    drawn = draw_answer(EXAMPLE)
    assert drawn.startswith("  ██   ")
    assert "7  " in drawn
    assert drawn.endswith("beside the picture, the brighter a part: looked at")


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
def test_pictures_that_are_none(changed: dict[str, object], message: str):
    with pytest.raises(DataError, match=rf"image\..*{message}"):
        replace(GREY, **changed)


def test_every_token_has_a_box_or_none():
    with pytest.raises(DataError, match=r"image.boxes must be one for each of 3 .* got 2"):
        replace(EXAMPLE, image=replace(GREY, boxes=(None, None)))
