"""Cards of the gallery have a drawing of what their page shows."""

from xml.etree import ElementTree

import pytest
from tools.website.thumbnails import thumbnail

from regard.viewer import Example, HeadMap, Image, Prediction, Text, show

TEXT, OTHER = Text.of(["I", "<see>", "你"]), Text.of(["je", "vois"])
SIDES = {"source": TEXT.text, "source_tokens": TEXT.tokens}
NOTHING = {"output": "", "output_tokens": ()}
ROWS = [[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]]


def of_texts() -> Example:
    maps = (HeadMap(kind="cross", layer=0, head=0, rows=ROWS),)
    return Example(**SIDES, output=OTHER.text, output_tokens=OTHER.tokens, maps=maps)


def of_values() -> Example:
    return Example(**SIDES, **NOTHING, answer=Prediction(values=(0.1, 0.0, 0.4)))


def of_pixels() -> Example:
    image = Image(pixels=(((0.2,), (0.4,)), ((0.6,), (0.8,))), boxes=((0, 0, 2, 2), None, None))
    return Example(**SIDES, **NOTHING, image=image)


@pytest.mark.parametrize(
    ("example", "shape", "count"),
    [
        (of_texts(), "path", 5),
        (of_texts(), "text", 5),
        (of_values(), "rect", 3),
        (of_pixels(), "rect", 4),
        (show([[[1.0, 0.0], [0.5, 0.5]]] * 3).document.examples[0], "rect", 9),
    ],
)
def test_an_example_is_drawn_by_its_kind(example: Example, shape: str, count: int):
    drawing = ElementTree.fromstring(thumbnail(example))
    assert len(drawing.findall(f"{{http://www.w3.org/2000/svg}}{shape}")) == count
