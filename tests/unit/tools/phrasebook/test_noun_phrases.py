"""Measure words, articles, number and owners."""

import pytest
from tools.phrasebook.chance import Chance
from tools.phrasebook.lexicon.nouns import NOUNS
from tools.phrasebook.lexicon.people import NAMES, PRONOUNS
from tools.phrasebook.lexicon.places import BY_ZH
from tools.phrasebook.noun_phrases import at, one, other, owned, somebody, spot, the, to


def text(unit):
    return "".join(unit.zh), " ".join(unit.en)


@pytest.mark.parametrize(
    ("zh", "expected"),
    [
        ("书", ("一本书", "a book")),
        ("鞋", ("一双鞋", "a pair of shoes")),
        ("裤子", ("一条裤子", "a pair of pants")),
        ("茶", ("一杯茶", "a cup of tea")),
        ("啤酒", ("一瓶啤酒", "a bottle of beer")),
        ("老师", ("一位老师", "a teacher")),
        ("学生", ("一个学生", "a student")),
        ("马", ("一匹马", "a horse")),
        ("音乐", ("音乐", "music")),
    ],
)
def test_one_takes_the_right_measure_word(zh, expected):
    assert text(one(NOUNS[zh])) == expected


@pytest.mark.parametrize(
    ("zh", "expected"),
    [
        ("书", "the book"),
        ("苹果", "the apples"),
        ("鞋", "the shoes"),
        ("数学", "math"),
        ("牛奶", "the milk"),
    ],
)
def test_a_bare_noun_before_its_verb_is_definite(zh, expected):
    assert text(the(NOUNS[zh])) == (zh, expected)


def test_owners():
    book = NOUNS["书"]
    assert text(owned(PRONOUNS[0], book)) == ("我的书", "my book")
    assert text(owned(NAMES[0], book)) == ("小明的书", "Xiaoming 's book")


def test_places_take_an_article_unless_they_are_lands():
    assert text(at(BY_ZH["图书馆"])) == ("在图书馆", "in the library")
    assert text(to(BY_ZH["学校"])) == ("学校", "to school")
    assert text(spot(BY_ZH["学校"])) == ("学校", "the school")
    assert text(to(BY_ZH["中国"])) == ("中国", "to China")


def test_nobody_meets_themselves():
    chance = Chance(1)
    for _ in range(300):
        first = somebody(chance)
        second = other(chance, first)
        assert first.zh != second.zh
        assert {first.zh, second.zh} not in ({"我", "我们"}, {"他", "他们"})
