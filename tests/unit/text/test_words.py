import pytest

from regard.errors import SettingError
from regard.text.tokenizers.words import Vocabulary, train_list

LINES = ["I love China.", "我爱中国。", "I don't."]


def texts(tokenizer, text):
    return [piece.text for piece in tokenizer.pieces(text)]


def test_a_word_outside_the_list_is_spelled():
    tokenizer = train_list(LINES, kind="words", vocab_size=None)
    assert texts(tokenizer, "I love lava.") == ["I", "love", "␣", *"lava", "."]
    assert tokenizer.decode(tokenizer.encode("I love lava.")) == "I love lava."


def test_an_unknown_character_shows_itself_and_reads_as_a_sign():
    tokenizer = train_list(LINES, kind="characters", vocab_size=None)
    assert texts(tokenizer, "我爱你") == ["我", "爱", "你"]
    assert tokenizer.encode("你") == [tokenizer.unk_id]
    assert tokenizer.decode(tokenizer.encode("我爱你")) == "我爱⁇"


def test_words_with_and_without_a_space_meet_at_the_start():
    tokenizer = train_list(["love me"], kind="words", vocab_size=None)
    assert tokenizer.encode("me love") == tokenizer.encode("love me")[::-1]


def test_vocab_size_keeps_the_most_frequent_and_still_spells():
    small = train_list(["b a a", "a a c", "cab cab cab"], kind="words", vocab_size=10)
    assert small.vocab_size == 10
    assert small.decode(small.encode("cab a b c")) == "cab a b c"


def test_a_vocabulary_larger_than_the_corpus_allows_names_the_largest():
    with pytest.raises(SettingError, match=r"at most 7; got 8\. .* vocab_size = 7"):
        train_list(["ab"], kind="characters", vocab_size=8)
    with pytest.raises(SettingError, match="must not be empty"):
        train_list([], kind="words", vocab_size=None)


def test_min_count_leaves_rare_words_to_be_spelled():
    tokenizer = train_list(["aa bb bb", "ab"], kind="words", vocab_size=None, min_count=2)
    assert texts(tokenizer, "bb aa") == ["bb", "␣", "a", "a"]


def test_unknown_words_share_ids_by_their_spelling():
    words = Vocabulary.learn(["a", "b", "a"], min_count=2)
    assert (words.ids(["a", "b"]), len(words)) == ([2, 1], 3)
    assert Vocabulary(["a"], buckets=100).ids(["Wien", "a", "Graz", "Wien"]) == [36, 2, 73, 36]
