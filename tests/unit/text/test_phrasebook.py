"""The phrasebook's file, whole and damaged."""

import lzma

import pytest

from regard.errors import DataError
from regard.text import phrasebook
from regard.text.phrasebook import FILE, phrases

CURE = "Install regard again: pip install .*; in a checkout: git restore"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A copy of the file, which is read in its place."""
    copy = tmp_path / FILE.name
    copy.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(phrasebook, "FILE", copy)
    phrasebook._read.cache_clear()
    yield copy
    phrasebook._read.cache_clear()


def test_words_and_links_are_read_with_a_sentence(file):
    file.write_bytes(
        lzma.compress("new\t汤姆|的|书|。\tTom's book|.\t0-0 2-1\t1-0\tx y\n".encode())
    )
    (phrase,) = phrases("new")
    assert (phrase.source, phrase.target) == ("汤姆的书。", "Tom's book.")
    assert phrase.source_words == ((0, 2), (2, 3), (3, 4), (4, 5))
    assert phrase.target_words == ((0, 5), (6, 10), (10, 11))
    assert phrase.sure == {(0, 0), (2, 1)}
    assert phrase.possible == {(0, 0), (2, 1), (1, 0)}
    assert phrase.constructions == ("x", "y")
    assert phrase.references == ("Tom's book.",)


def test_a_list_that_is_changed_is_nobody_elses(file):
    phrases("new").clear()
    assert len(phrases("new")) == 1_500


def changed(data, position):
    """The data with one bit turned."""
    copy = bytearray(data)
    copy[position] ^= 1
    return bytes(copy)


@pytest.mark.parametrize("position", [20, 300_000, -60])
@pytest.mark.parametrize("damage", [changed, lambda data, position: data[: position // 20]])
def test_a_damaged_file_is_refused_with_the_cure(file, damage, position):
    file.write_bytes(damage(file.read_bytes(), position))
    with pytest.raises(DataError, match=rf"phrasebook.tsv.xz must be .* as it was .* {CURE}"):
        phrases("valid")
    file.unlink()
    with pytest.raises(DataError, match=f"No such file or directory.*{CURE}"):
        phrases("valid")
