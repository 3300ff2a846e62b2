"""Compares what commands print with what was recorded of them."""

import re

import pytest

NUMBER = re.compile(r"-?\d*\.\d+(?:e-\d+)?")
# The version and the clock.
CHANGING = {"regard", "seconds", "speed"}


def is_like(value, recorded, rel=1e-3):
    """Whether JSON is the same, but for roundings."""
    if isinstance(recorded, dict) and isinstance(value, dict):
        names = recorded.keys() - CHANGING
        return names == value.keys() - CHANGING and all(
            is_like(value[name], recorded[name], rel) for name in names
        )
    if isinstance(recorded, list) and isinstance(value, list):
        pairs = zip(value, recorded, strict=False)
        return len(value) == len(recorded) and all(is_like(*pair, rel) for pair in pairs)
    if isinstance(recorded, float):
        return value == pytest.approx(recorded, rel=rel, abs=2e-5)
    return value == recorded


def has_like_words(printed, recorded):
    """Whether text is the same, but for the last digit of its fractions."""
    fractions = [list(map(float, NUMBER.findall(text))) for text in (printed, recorded)]
    words = [NUMBER.sub("#", text) for text in (printed, recorded)]
    return words[0] == words[1] and fractions[0] == pytest.approx(fractions[1], rel=1e-3, abs=0.011)
