"""Overlap of two texts in numbers: rare words, names, stems, stretches; saved and loaded."""

import math

import pytest

from regard.errors import RunError
from regard.tasks.overlap import AMONG_FEATURES, OVERLAP_FEATURES, Overlap
from regard.text.files import write_plain

TEXTS = ["A king had a son.", "It rained on a king.", "A dog ran in 1725."]


def numbers(first, second):
    values = Overlap.learn(TEXTS).features(first, second)
    return dict(zip(OVERLAP_FEATURES, values, strict=True))


def test_a_rare_word_weighs_more_than_one_that_is_everywhere():
    overlap = Overlap.learn(TEXTS)
    assert overlap.rarity("a") == pytest.approx(math.log(4 / 3))
    assert overlap.rarity("dog") == overlap.rarity("never seen") == math.log(4)
    assert overlap.shared("A king?", "The king.") == overlap.rarity("king")


@pytest.mark.parametrize(
    ("name", "alike", "unlike"),
    [
        ("shared words", "The dog.", "A cat."),
        ("shared words, all alike", "Was a cat old?", "A cat."),
        ("words with the same beginning", "Running dogmatically", "Dog ran"),
        ("shared pairs of neighbours", "A dog was old.", "Old was dog a."),
        ("shared names and numbers, as written", "Ann was here.", "ann was here."),
        ("shared runs of four letters", "Some dogmatist.", "A cat."),
        ("names that are missing, by how rare they are", "ann was here.", "Ann was here."),
        ("rarest missing name", "ann was here.", "Ann was here."),
    ],
)
def test_each_number_tells_more_from_less(name, alike, unlike):
    question = "Was a dog old? Ann runnings dogmatism"
    assert numbers(question, alike)[name] > numbers(question, unlike)[name]


def test_words_that_stand_close_are_distinguished_from_words_far_apart():
    far = f"Dog {'x ' * 30} ran."
    close, distant = numbers("dog ran", "x dog ran x"), numbers("dog ran", far)
    assert close["shared words"] == distant["shared words"] == 5.0
    assert close["shared words that stand close"] == 5.0
    assert distant["shared words that stand close"] == 2.5


def test_of_several_texts_a_word_counts_by_how_few_of_them_have_it():
    overlap = Overlap.learn(TEXTS)
    texts = ["A dog and a king.", "A king.", "A king ran."]
    rows = [
        dict(zip(AMONG_FEATURES, row[-4:], strict=True))
        for row in overlap.among("A dog king", texts)
    ]
    total = sum(map(overlap.rarity, ("a", "dog", "king")))
    common, dog = overlap.rarity("a") + overlap.rarity("king"), overlap.rarity("dog")
    expected = [(common / 3 + dog, total, dog, 1 / 3 + 1 / 3 + 1), (common / 3, common, 0.0, 2 / 3)]
    for row, (few, of_any, alone, begun) in zip(rows, [*expected, expected[1]], strict=True):
        numbers = (few / total, of_any / total, alone / total, begun / 3)
        assert list(row.values()) == pytest.approx([5 * number for number in numbers])
    assert [row[:-4] for row in overlap.among("A dog?", TEXTS)] == [
        overlap.features("A dog?", text) for text in TEXTS
    ]


def test_texts_without_words_share_nothing():
    assert numbers("?", "")["shared words"] == 0.0
    assert all(math.isfinite(each) for each in numbers("", "A dog.").values())


def test_it_is_saved_and_loaded(tmp_path):
    overlap = Overlap.learn(TEXTS)
    overlap.save(tmp_path)
    again = Overlap.load(tmp_path)
    assert again.features("A king?", TEXTS[1]) == overlap.features("A king?", TEXTS[1])
    write_plain(tmp_path, {"texts": overlap.texts, "counts": overlap.counts}, "overlap.json")
    earlier = Overlap.load(tmp_path)  # of a run from before three of the numbers
    first = overlap.features("A king?", TEXTS[1])[:-3]
    assert earlier.features("A king?", TEXTS[1]) == earlier.among("A king?", TEXTS[1:2])[0] == first
    (tmp_path / "overlap.json").unlink()
    with pytest.raises(RunError):
        Overlap.load(tmp_path)
