"""Copy and repetition rates."""

import pytest

from regard.metrics import novelty, repetition


def test_every_n_gram_counts_as_often_as_it_is_said() -> None:
    outputs, sources = ["a cat sat and a dog", "dogs"], ["A cat sat.", "cats"]
    assert novelty(outputs, sources, n=1) == pytest.approx(100 * 3 / 7)  # and, dog, dogs
    assert novelty(outputs, sources, n=2) == pytest.approx(100 * 3 / 5)
    assert novelty(outputs, sources, n=7) == 0


def test_what_another_output_has_said_is_no_repetition() -> None:
    assert repetition(["a cat", "a cat"], n=1) == 0
    assert repetition(["a cat and a cat", "a"], n=1) == pytest.approx(100 * 2 / 6)
    assert repetition(["a cat and a cat"], n=2) == pytest.approx(25)


def test_chinese_is_counted_by_characters() -> None:
    assert novelty(["国王伤心"], ["国王很伤心"], n=2) == pytest.approx(100 / 3)
