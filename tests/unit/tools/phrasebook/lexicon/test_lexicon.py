"""The lexicon as a whole."""

import pytest
from tools.phrasebook.lexicon import entries, lexicon_size
from tools.phrasebook.lexicon.nouns import KINDS, nouns
from tools.phrasebook.lexicon.people import PRONOUNS
from tools.phrasebook.lexicon.selection import select


def test_there_are_at_least_six_hundred_entries():
    assert lexicon_size() >= 600


def test_entries_are_chinese_and_english():
    for zh, en in entries():
        assert all("\u4e00" <= character <= "\u9fff" for character in zh), zh
        assert all(word[0].isascii() and word[0].isalnum() for word in en.split()), en


def test_no_noun_is_of_two_kinds():
    names = [noun.zh for table in KINDS.values() for noun in table]
    assert len(names) == len(set(names))


def test_nouns_are_found_by_kind_and_by_name():
    assert [noun.en for noun in nouns("flower 书")] == ["flower", "rose", "book"]


def test_selecting_a_name_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="它"):
        select(PRONOUNS, "我 它")
