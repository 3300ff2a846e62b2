"""Pictures hold what they are given, are well-formed, and need nothing from outside."""

import re
from xml.etree import ElementTree

from regard.comparison.drawing import draw
from regard.comparison.page import page
from regard.comparison.report import ComparisonReport, ComparisonTable, Curve, HeatMap, Plot

SVG = "{http://www.w3.org/2000/svg}"


def make_plot(*points, **settings):
    lines = (Curve(name="一 & <one>", points=tuple(points)),)
    return Plot(title="T", across="n", up="y", lines=lines, **settings)


def marks(drawn):
    """Where the points stand, without the mark of the legend."""
    root = ElementTree.fromstring(drawn)
    found = []
    for path in root.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None:
            place = path.get("transform").removeprefix("translate(").removesuffix(")")
            found.append((title.text, *map(float, place.split())))
    return found[:-1]


def test_every_point_is_marked_with_its_figures_and_stands_in_order():
    found = marks(draw(make_plot((1, 5.0), (2, 3.0), (4, 9.5))))
    assert [text for text, _, _ in found] == [
        f"一 & <one>: {p}" for p in ("1, 5", "2, 3", "4, 9.5")
    ]
    xs, ys = [x for _, x, _ in found], [y for *_, y in found]
    assert xs == sorted(xs)
    assert ys[2] < ys[0] < ys[1]  # upwards is less


def test_equal_factors_are_equal_distances_on_logarithmic_axes():
    found = marks(draw(make_plot((2, 10), (4, 100), (8, 1000), log_across=True, log_up=True)))
    (_, x0, y0), (_, x1, y1), (_, x2, y2) = found
    assert abs((x1 - x0) - (x2 - x1)) < 0.3
    assert abs((y0 - y1) - (y1 - y2)) < 0.3


def test_what_a_logarithm_cannot_show_is_left_out_and_said():
    drawn = draw(make_plot((1, 0), (2, 0), (3, 0), log_up=True))
    assert "nothing to show" in drawn
    two = Plot(
        title="T",
        across="x",
        up="y",
        lines=(Curve(name="zero", points=((1, 0),)), Curve(name="one", points=((1, 1), (2, 3)))),
        log_up=True,
    )
    assert "zero (0)" in draw(two)
    assert "one (0)" not in draw(two)


def test_a_map_has_a_cell_for_each_number_dark_to_light():
    heat = HeatMap(title="M", across="c", down="r", rows=((0.0, 0.5, 1.0), (1.0, 0.5, 0.0)))
    root = ElementTree.fromstring(draw(heat))
    cells = [cell.get("fill") for cell in root.iter(f"{SVG}rect") if cell.get("fill")][:6]
    assert cells[0] == cells[5] == "#00224e"
    assert cells[2] == cells[3] == "#fee838"
    assert cells[1] == cells[4]


def test_a_page_needs_nothing_from_outside_and_knows_light_and_dark():
    table = ComparisonTable(title="<T>", columns=("a", "b"), rows=(("1", "& 2"),))
    one = ComparisonReport(
        title="一", text=("x < y",), tables=(table,), pictures=(make_plot((1, 2), (2, 3)),)
    )
    text = page(one, one)
    assert not re.search(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text
    assert "url(" not in text
    assert "light-dark(" in text
    assert "prefers-color-scheme:dark" in text
    assert "x &lt; y" in text
    assert "<td>&amp; 2</td>" in text
    assert text.count("<svg") == 2
