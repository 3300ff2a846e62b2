"""Naive Bayes on n-grams of a text."""

from collections.abc import Iterable, Sequence

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from regard.text.languages import side_script


class NaiveBayes:
    """Multinomial naive Bayes on n-grams, each once a text: Wang & Manning (2012), section 2.1."""

    def __init__(self, examples: Iterable[tuple[str, str]]) -> None:
        texts, labels = zip(*examples, strict=True)
        self._by_words = side_script(texts[:1000]) != "Han or kana"
        self._model = make_pipeline(CountVectorizer(analyzer=self._grams), MultinomialNB())
        self._model.fit(texts, labels)

    def label(self, text: str) -> str:
        """The most probable label."""
        return str(self._model.predict([text])[0])

    def probabilities(self, text: str) -> dict[str, float]:
        """Of each label, given the text."""
        (shares,) = self._model.predict_proba([text]).tolist()
        return dict(zip(self._model.classes_.tolist(), shares, strict=True))

    def _grams(self, text: str) -> set[str]:
        units: Sequence[str] = text.lower().split() if self._by_words else text
        longest = 2 if self._by_words else 3
        return {
            "\x00".join(units[start : start + length])
            for length in range(1, longest + 1)
            for start in range(len(units) - length + 1)
        }
