"""Counts of lines left out are in the cache as they were."""

from regard.text import BadLines
from regard.training.corpora.json_forms import bad_lines_of, counted


def test_counts_of_lines_left_out_are_kept():
    lines = BadLines()
    for number in range(5):
        lines.add("empty", f"line {number}")
    found = bad_lines_of(counted(lines))
    assert (found.counts, found.examples) == (lines.counts, lines.examples)
    found.add("empty", "another")
    assert lines.counts["empty"] == 5
