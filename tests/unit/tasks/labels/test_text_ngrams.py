"""N-grams of texts and their TF-IDF, beside scikit-learn's where it counts the same."""

import re

import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from regard.tasks.labels.text_ngrams import TextNgrams, ngrams

CHINESE = ["很好吃很好吃", "不好吃了", "吃不了", "好的很，不好 吃"]


def test_ngrams_end_where_their_last_character_stands():
    text = "Don't go, 很好."
    for end, grams in ngrams(text):
        for gram in grams:
            last = gram.rstrip(" ").rpartition(" ")[2]
            assert not last or text[:end].lower().endswith(last)


def test_ngrams_of_spaced_words_are_those_of_char_wb_with_words_and_pairs():
    text = "a good film"
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 6))
    of_characters = set(vectorizer.build_analyzer()(text))
    found = {gram for _, grams in ngrams(text) for gram in grams}
    # For a word shorter than the n-gram scikit-learn takes the whole of it, which is among these.
    assert found - of_characters == {"  a", "  good", "  film", "  a good", "  good film"}
    assert of_characters <= found


def test_capitals_of_two_characters_in_lower_case_keep_their_places():
    assert [end for end, _ in ngrams("İyi")] == [1, 2, 3]


def test_tfidf_of_text_without_spaces_is_that_of_scikit_learn():
    texts = [text.replace(" ", "") for text in CHINESE]
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 5), min_df=2, sublinear_tf=True)
    expected = vectorizer.fit_transform(texts).toarray()
    known = TextNgrams.learn(texts)
    assert set(known.counts) == set(vectorizer.get_feature_names_out())
    inputs = known.inputs([known.tfidf(text) for text in texts])
    order = [vectorizer.vocabulary_[unit] for unit in known.counts]
    dense = inputs @ torch.eye(len(known))
    torch.testing.assert_close(dense, torch.from_numpy(expected[:, order]).float())


def test_tfidf_of_words_and_that_of_their_characters_are_two_parts_of_scikit_learn():
    texts = ["a good film a good day", "good day film", "a film, a day", "the day a film"]
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+")
    characters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 6), min_df=2, sublinear_tf=True
    )
    # In "char_wb" a short word counts once for each longer n-gram; here once.
    texts = [
        re.sub(r"\b(a|the|day|film|good)\b", r"\1ish", text.replace(",", "")) for text in texts
    ]
    known = TextNgrams.learn(texts)
    dense = known.inputs([known.tfidf(text) for text in texts]) @ torch.eye(len(known))
    for vectorizer, before in ((words, "  "), (characters, "")):
        expected = torch.from_numpy(vectorizer.fit_transform(texts).toarray()).float()
        numbers = {unit: number for number, unit in enumerate(known.counts)}
        order = [numbers[f"{before}{unit}"] for unit in vectorizer.get_feature_names_out()]
        torch.testing.assert_close(dense[:, order], expected)


def test_texts_without_known_ngrams_have_no_inputs():
    known = TextNgrams.learn(["ab", "cd"])
    assert len(known) == 0
    assert len(known.inputs([known.tfidf("ab")])) == 1
