"""Figures of the course show what the engine computes today, in both languages."""

import json
import re
from pathlib import Path

import pytest
from tools.figures.__main__ import FOLDER
from tools.figures.drawing import PICTURES, fingerprint

STORED = json.loads((FOLDER / "data.json").read_text("utf-8"))


def test_each_figure_is_drawn_in_both_languages_and_none_is_left_over():
    drawn = {f"{name}{suffix}.svg" for name in PICTURES for suffix in ("", ".zh")}
    assert {file.name for file in FOLDER.glob("*.svg")} == drawn
    assert STORED.keys() == PICTURES.keys()


@pytest.mark.parametrize("name", [name for name, each in PICTURES.items() if not each.is_learned])
def test_the_numbers_of_a_figure_are_those_it_was_drawn_from(name):
    prints = fingerprint(PICTURES[name].data())
    assert prints.keys() == STORED[name].keys()
    for array, numbers in prints.items():
        assert numbers == pytest.approx(STORED[name][array], rel=1e-3, abs=1e-5), array


def test_other_numbers_have_another_fingerprint():
    one, other = ({"w": [[0.2, 0.8]]}, {"w": [[0.8, 0.2]]})
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_shows_what_the_demo_printed(name):
    demo = json.loads((FOLDER / "demo.jsonl").read_text("utf-8"))
    page = (Path(__file__).parents[3] / name).read_text("utf-8")
    assert f"{demo['source']} → {demo['translation']}" in page
    for word, weights in zip(demo["output_tokens"], demo["attention"], strict=True):
        (row,) = re.findall(rf"^ *{re.escape(word)} ((?: .*[.·].*){{1}})$", page, re.MULTILINE)
        shown = re.findall(r"\.\d\d|·", row)
        numbers = [0.0 if cell == "·" else float(cell) for cell in shown]
        # Both are rounded, to two digits and to four.
        assert numbers == pytest.approx(weights, rel=0, abs=0.00505), word
