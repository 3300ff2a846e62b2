"""The line plot: what is drawn is XML and says what it was given."""

from xml.etree import ElementTree

import pytest
from benchmarks.line_plot import Curve, Panel, _ticks, draw

SVG = "{http://www.w3.org/2000/svg}"


def make_panel(title: str = "T & T") -> Panel:
    lines = tuple(
        Curve(name=name, points=((5.0, height), (35.0, height / 2)), margins=(1.0, 2.0))
        for name, height in (("a < b", 20.0), ("c", 30.0))
    )
    return Panel(title=title, across="characters", up="BLEU", lines=lines)


def test_names_are_escaped_and_shown():
    root = ElementTree.fromstring(draw([make_panel()]))
    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"T & T", "a < b", "c", "characters", "BLEU"} <= texts


def test_every_point_is_a_dot_inside_its_panel():
    root = ElementTree.fromstring(draw([make_panel(), make_panel("second")]))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    dots = list(root.iter(f"{SVG}circle"))
    assert len(dots) == 2 * 2 * 2
    for dot in dots:
        assert 0 < float(dot.get("cx", 0)) < width / 2
        assert 0 < float(dot.get("cy", 0)) < height


def test_better_is_higher():
    root = ElementTree.fromstring(draw([make_panel()]))
    first, _, second, _ = (float(dot.get("cy", 0)) for dot in root.iter(f"{SVG}circle"))
    assert second < first


@pytest.mark.parametrize("most", [0.07, 3.2, 25.0, 41.0, 100.0, 68_000.0])
def test_ticks_are_few_and_inside(most: float):
    ticks = _ticks(most)
    assert 3 <= len(ticks) <= 9
    assert ticks[0] == 0
    assert ticks[-1] <= most
