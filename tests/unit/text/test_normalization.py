import pytest

from regard.text import normalize
from regard.text.normalization import opens_with_word, split_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" a  b ", "a b"),
        ("ein\u00a0Mann\tin Blau", "ein Mann in Blau"),
        ("我\u3000爱", "我 爱"),
        ("你好，世界！？", "你好，世界！？"),
        ("ﬁ ① Ａ e\u0301", "ﬁ ① Ａ e\u0301"),
        ("\ud83d!", "\ufffd!"),
        ("\n\t ", ""),
    ],
)
def test_normalize_touches_white_space_only(text, expected):
    assert normalize(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop; it's 3.50!", ["Don't", " stop", ";", " it's", " 3", ".", "50", "!"]),
        ('he said "no"', ["he", " said", ' "', "no", '"']),
        ("2009年我 去了", ["2009", "年", "我", " ", "去", "了"]),
        ("नमस्ते दुनिया", ["नमस्ते", " दुनिया"]),
        ("cafe\u0301 ok", ["cafe\u0301", " ok"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("서울 사람", ["서울", " 사람"]),
    ],
)
def test_words_are_split_by_script(text, words):
    assert split_words(text) == words


def test_only_a_spaced_word_at_the_start_counts_as_following_a_space():
    assert all(map(opens_with_word, ("Tom", "서울 사람")))
    assert not any(map(opens_with_word, ("汤姆", '"Tom"', "Tom 来了", "")))
