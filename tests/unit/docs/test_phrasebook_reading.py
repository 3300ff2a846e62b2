"""The pairs that were read are pairs of the phrasebook, drawn and not chosen."""

import random
from pathlib import Path

from regard.text.phrasebook import phrases

READING = Path(__file__).parents[3] / "docs" / "phrasebook-reading.md"


def test_the_pairs_read_are_a_random_draw_of_the_phrasebook():
    every = [phrase for split in ("train", "valid", "test", "new") for phrase in phrases(split)]
    drawn = [(phrase.source, phrase.target) for phrase in random.Random(60).sample(every, 60)]
    lines = READING.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line[2:3].isdigit()]
    assert [(row[1], row[2]) for row in rows] == drawn
    assert all(row[3] and row[4] for row in rows)
