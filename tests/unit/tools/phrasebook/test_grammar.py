"""Putting two languages together with their links."""

import pytest
from tools.phrasebook.grammar import NOTHING, build, word

HE = word("他", "he")
KEY = word("钥匙", "key")
PHONE = word("手机", "cell phone")


def test_word_links_every_english_word():
    assert PHONE.links == ((0, 0, True), (0, 1, True))
    assert PHONE.en_head == (0, 1)


def test_slots_keep_their_links_where_the_order_differs():
    unit = build("{who} {thing} 呢", "so {thing} {who}", who=HE, thing=PHONE)
    assert unit.zh == ("他", "手机", "呢")
    assert unit.en == ("so", "cell", "phone", "he")
    assert set(unit.links) == {(0, 3, True), (1, 1, True), (1, 2, True)}


def test_a_tag_on_both_sides_links_words():
    unit = build("说#say 了~say", "said#say")
    assert set(unit.links) == {(0, 0, True), (1, 0, False)}


def test_a_tag_with_the_name_of_a_slot_links_to_its_head():
    thing = build("一~a 把~a {noun}!", "a~a {noun}!", noun=PHONE)
    unit = build("把~thing {thing}", "{thing}", thing=thing)
    assert (0, 1, False) in unit.links
    assert (0, 2, False) in unit.links
    assert (0, 0, False) not in unit.links


def test_a_slot_may_stand_twice():
    unit = build("{who} {who}", "{who}", who=HE)
    assert set(unit.links) == {(0, 0, True), (1, 0, True)}


def test_every_word_is_a_head_unless_some_are_marked():
    assert build("很 {who}", "very {who}", who=HE).zh_head == (0, 1)
    assert build("很 {who}!", "very {who}!", who=HE).zh_head == (1,)


def test_an_empty_slot_leaves_nothing():
    unit = build("{who} {time} 来#come", "{who} came#come {time}", who=HE, time=NOTHING)
    assert unit.en == ("he", "came")


def test_constructions_inside_are_named_once():
    inner = build("{it}", "{it}", it=KEY, name="inner")
    unit = build("{a} {b}", "{a} {b}", a=inner, b=inner, name="outer")
    assert unit.constructions == ("outer", "inner")


def test_a_slot_may_not_be_linked_by_a_sure_tag():
    with pytest.raises(AssertionError, match="linked by ~"):
        build("{who} 谁#who", "who#who {who}", who=HE)
