"""The phrasebook's file, whole and damaged."""

import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.text import phrasebook
from regard.text.phrasebook import FILE, phrases

CURE = "Install regard again: pip install .*; in a checkout: git restore"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
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


@pytest.mark.parametrize("place", [20, 300_000, -60])
def test_a_file_with_one_byte_changed_is_refused_with_the_cure(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=rf"phrasebook.tsv.xz must be .* as it was .* {CURE}"):
        phrases("valid")


@pytest.mark.parametrize("size", [0, 3, 300_000, -1])
def test_a_file_cut_short_is_refused_with_the_cure(file, size):
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DataError, match=CURE):
        phrases("valid")


def test_a_missing_file_is_refused_with_the_cure(file):
    file.unlink()
    with pytest.raises(DataError, match=f"No such file or directory.*{CURE}"):
        phrases("valid")
