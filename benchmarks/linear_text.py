"""The strongest simple classifiers of text: TF-IDF of n-grams with a linear model, scikit-learn.

Vectorizer and C are chosen by accuracy on the validation examples, or where there are none by
cross-validation on the training examples; nothing is learned from the examples that are measured.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC

from benchmarks.measuring import sized

# Texts and their labels.
Labelled = tuple[Sequence[str], Sequence[str]]
FOLDS = sized(5, 2)
# Each with the values of C that are tried.
CLASSIFIERS: Mapping[str, tuple[Callable[[float], Any], Sequence[float]]] = {
    "logistic regression": (lambda c: LogisticRegression(C=c, solver="liblinear"), (3.0, 10.0)),
    "linear SVM": (lambda c: LinearSVC(C=c), (0.25, 1.0)),
}


def _words(longest: int) -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, longest), sublinear_tf=True, token_pattern=r"\S+")


def _characters(kind: str, first: int, longest: int) -> TfidfVectorizer:
    return TfidfVectorizer(analyzer=kind, ngram_range=(first, longest), min_df=2, sublinear_tf=True)


SPACED = {
    "words 1-2": lambda: _words(2),
    "words 1-2, characters 2-6": lambda: make_union(_words(2), _characters("char_wb", 2, 6)),
}
UNSPACED = {
    "characters 1-2": lambda: _characters("char", 1, 2),
    "characters 1-5": lambda: _characters("char", 1, 5),
}


def measure(
    train: Labelled, parts: Mapping[str, Labelled], *, valid: str | None, spaced: bool
) -> dict[str, Any]:
    """Accuracy of each classifier on each of the parts, in percent, and what was chosen.

    ``valid`` is the part that vectorizer and C are chosen on; None is cross-validation.
    """
    tried: dict[str, list[tuple[float, str, dict[str, float]]]] = {name: [] for name in CLASSIFIERS}
    for vectors, make in (SPACED if spaced else UNSPACED).items():
        vectorizer = make().fit(train[0])
        inputs = vectorizer.transform(train[0])
        matrices = {part: (vectorizer.transform(texts), y) for part, (texts, y) in parts.items()}
        for name, (classifier, choices) in CLASSIFIERS.items():
            for c in choices:
                model = classifier(c).fit(inputs, train[1])
                found = {part: _accuracy(model, *each) for part, each in matrices.items()}
                score = found[valid] if valid else _cross_validated(train, make, classifier(c))
                tried[name].append((score, f"{vectors}, C = {c:g}", found))
    best = {name: max(each, key=lambda one: one[0]) for name, each in tried.items()}
    return {
        name: {**{f"{part} accuracy": value for part, value in found.items()}, "chosen": chosen}
        for name, (_, chosen, found) in best.items()
    }


def _cross_validated(train: Labelled, make: Callable[[], Any], classifier: Any) -> float:
    pipeline = make_pipeline(make(), classifier)
    return float(np.mean(cross_val_score(pipeline, *train, cv=FOLDS)))


def _accuracy(model: Any, inputs: Any, labels: Sequence[str]) -> float:
    return round(100 * float(np.mean(model.predict(inputs) == np.array(labels))), 2)
