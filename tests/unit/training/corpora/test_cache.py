import os
from pathlib import Path

import pytest

from regard.errors import DataError, SettingError
from regard.training.corpora import cache as cache_module
from regard.training.corpora import training_text
from regard.training.corpora.cache import default_cache, sum_of
from regard.training.corpora.stored_text import StoredText
from regard.training.corpora.training_text import LARGE, is_on_disk


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "regard" / "corpora"


def test_the_cache_is_the_users_own(home, monkeypatch):
    assert default_cache() == home
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert default_cache() == Path("/somewhere/.cache/regard/corpora")


def test_the_sum_of_a_file_is_known_until_it_changes(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("one")
    first = sum_of(file, tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "_READ_AT_ONCE", "not to be read")
        assert sum_of(file, tmp_path / "cache") == first
    file.write_text("two")
    os.utime(file, (1, 1))
    assert sum_of(file, tmp_path / "cache") != first


def test_a_missing_file_is_an_error(recipe, tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv must exist; it does not"):
        StoredText.of(recipe(data={"train": "a.tsv"}), cache=tmp_path / "cache")


def test_a_gigabyte_of_text_goes_to_the_disk(recipe, pairs, monkeypatch):
    assert not is_on_disk(recipe(), "auto")
    size = sum((pairs / name).stat().st_size * n for name, n in (("a.tsv", 1), ("b.tsv.gz", 4)))
    assert LARGE == 2**30
    monkeypatch.setattr(training_text, "LARGE", size)
    assert is_on_disk(recipe(), "auto")
    assert not is_on_disk(recipe(), "memory")
    monkeypatch.setattr(training_text, "LARGE", size + 1)
    assert not is_on_disk(recipe(), "auto")
    assert is_on_disk(recipe(), "disk")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"task": "classification"}, "for classification; got 'disk'"),
        ({"data": {"train": "phrasebook"}}, "not in files"),
        ({"data": {"test": "held out"}}, r"held out of the training text; name one: data\.test"),
        ({"tokenizer": {"type": "bpe", "dropout": 0.1}}, "every epoch cuts the text anew"),
    ],
)
def test_what_cannot_be_on_disk_says_why(recipe, monkeypatch, sections, message):
    monkeypatch.setattr(training_text, "LARGE", 1)
    assert not is_on_disk(recipe(**sections), "auto")
    with pytest.raises(SettingError, match=message):
        is_on_disk(recipe(**sections), "disk")
