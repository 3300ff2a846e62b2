"""The phrasebook: its 40,000 pairs as they are pinned, and the other files."""

import hashlib
import random
from pathlib import Path

import pytest

from regard.text.phrasebook import handwritten, phrases

SPLITS = ("train", "valid", "test", "new")
CARD = Path(__file__).parents[2] / "docs" / "phrasebook.md"
MARKS = str.maketrans("", "", "。，？！.,?!' ")
# The whole corpus; changes only when the phrasebook is meant to change.
DIGEST = "74e3785f69595ee5c90815c8d099aca6c4f61611a035af2a1cc9886dc62594f8"


@pytest.fixture(scope="module")
def splits():
    """Every split, by name."""
    return {split: phrases(split) for split in SPLITS}


@pytest.fixture(scope="module")
def every(splits):
    return [phrase for part in splits.values() for phrase in part]


def plain_key(text):
    """The sentence without case, punctuation and spaces."""
    return text.translate(MARKS).lower()


def words_of(text, spans):
    return [text[start:end] for start, end in spans]


def source_words(phrase):
    return words_of(phrase.source, phrase.source_words)


def test_the_corpus_is_pinned(splits):
    digest = hashlib.sha256()
    for name, part in splits.items():
        for phrase in part:
            fields = (
                name,
                phrase.source,
                phrase.target,
                phrase.source_words,
                phrase.target_words,
                sorted(phrase.sure),
                sorted(phrase.possible),
                phrase.constructions,
                phrase.references,
            )
            digest.update(repr(fields).encode())
    assert digest.hexdigest() == DIGEST


def test_everyday_sentences_are_others_in_the_same_characters(every):
    everyday = phrases("everyday")
    assert len(everyday) == 10_000
    known = {plain_key(phrase.source) for phrase in every}
    added = {plain_key(phrase.source) for phrase in everyday}
    assert len(added) == 10_000
    assert known.isdisjoint(added)
    assert set("".join(added)) <= set("".join(known))


def test_sentences_written_by_hand_are_in_no_part_and_in_its_words(every):
    written = handwritten()
    assert len(written) == 40
    parts = [*every, *phrases("everyday")]
    assert {plain_key(p.source) for p in parts}.isdisjoint(plain_key(p.source) for p in written)
    words = {word for phrase in every for word in source_words(phrase)}
    for phrase in written:
        assert phrase.target == phrase.references[0]
        assert _is_made_of(phrase.source, words), phrase.source


def _is_made_of(text, words):
    return not text or any(
        text[:end] in words and _is_made_of(text[end:], words) for end in range(1, len(text) + 1)
    )


def test_the_pairs_read_on_its_card_are_a_random_draw(every):
    drawn = [(phrase.source, phrase.target) for phrase in random.Random(60).sample(every, 60)]
    lines = CARD.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line[2:3].isdigit()]
    assert [(row[1], row[2]) for row in rows] == drawn
    assert all(row[3] and row[4] for row in rows)
