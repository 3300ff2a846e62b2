"""Hand-made links are read as people wrote them."""

from benchmarks.alignment import hand_aligned

LINE = "我 爱 中国\tI love China\t0-0 1-1 2p2"


def test_chinese_words_are_joined_and_english_ones_are_not():
    pair = hand_aligned(LINE)
    assert (pair.source, pair.target) == ("我爱中国", "I love China")


def test_words_stand_where_they_are_in_the_text():
    pair = hand_aligned(LINE)
    assert [pair.source[slice(*span)] for span in pair.source_words] == ["我", "爱", "中国"]
    assert [pair.target[slice(*span)] for span in pair.target_words] == ["I", "love", "China"]


def test_sure_links_are_possible_too():
    pair = hand_aligned(LINE)
    assert pair.sure == {(0, 0), (1, 1)}
    assert pair.possible == {(0, 0), (1, 1), (2, 2)}
