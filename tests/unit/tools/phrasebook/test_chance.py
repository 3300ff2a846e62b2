"""Chance that is the same everywhere."""

from collections import Counter

from tools.phrasebook.chance import Chance

TABLE = tuple(range(7))


def test_the_same_seed_gives_the_same_picks():
    first, second = Chance(5), Chance(5)
    assert [first.below(100) for _ in range(20)] == [second.below(100) for _ in range(20)]


def test_the_sequence_is_pinned():
    chance = Chance(1)
    assert [chance.below(1000) for _ in range(5)] == [134, 847, 763, 255, 495]


def test_dealing_gives_every_option_equally_often():
    chance = Chance(2)
    counts = Counter(chance.deal(TABLE) for _ in range(70))
    assert set(counts.values()) == {10}


def test_tables_are_dealt_apart():
    chance = Chance(3)
    other = tuple(range(10, 13))
    dealt = [(chance.deal(TABLE), chance.deal(other)) for _ in range(21)]
    assert Counter(first for first, _ in dealt) == dict.fromkeys(TABLE, 3)
    assert Counter(second for _, second in dealt) == dict.fromkeys(other, 7)


def test_shuffling_loses_nothing():
    assert sorted(Chance(4).shuffle(TABLE)) == list(TABLE)
