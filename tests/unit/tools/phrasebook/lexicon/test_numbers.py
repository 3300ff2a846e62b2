"""Numbers in both languages."""

import pytest
from tools.phrasebook.lexicon.numbers import chinese_number, count, english_number, year


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "零"),
        (2, "二"),
        (10, "十"),
        (11, "十一"),
        (20, "二十"),
        (25, "二十五"),
        (100, "一百"),
        (105, "一百零五"),
        (110, "一百一十"),
        (150, "一百五十"),
        (1000, "一千"),
        (2000, "两千"),
        (2050, "两千零五十"),
        (3333, "三千三百三十三"),
    ],
)
def test_chinese(number, expected):
    assert chinese_number(number) == expected


def test_english_spells_out_up_to_twelve():
    assert [english_number(number) for number in (1, 12, 13)] == ["one", "twelve", "13"]


def test_two_of_a_thing_is_liang():
    assert count(2).zh == ("两",)
    assert count(12).zh == ("十二",)
    assert count(1).person == "singular"
    assert count(3).person == "plural"


def test_years_are_read_figure_by_figure():
    assert (year(2008).zh, year(2008).en) == (("二零零八年",), ("2008",))
