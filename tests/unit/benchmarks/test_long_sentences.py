"""Joined lines hold whole pairs, one to four, the same each time."""

import random
from collections import Counter

from benchmarks.long_sentences import MOST_JOINED, TEXTS, _lines

from regard.text import Pair

PAIRS = [Pair(f"源{n}。", f"T{n}.", (f"T{n}.",), f"x:{n}") for n in range(20)]


def test_as_many_lines_of_each_count():
    lines = _lines(TEXTS["joined"], PAIRS, 40, random.Random(1))
    counts = Counter(len(line.split("\t")[0].split()) for line in lines)
    assert counts == dict.fromkeys(range(1, MOST_JOINED + 1), 10)


def test_both_sides_hold_the_same_pairs_in_order():
    for line in _lines(TEXTS["joined"], PAIRS, 40, random.Random(1)):
        source, target = line.split("\t")
        assert source.replace("源", "T").replace("。", ".") == target
