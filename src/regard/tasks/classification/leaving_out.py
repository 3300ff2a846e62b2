"""How much the odds of a label fall without each token."""

import math
from collections.abc import Callable, Sequence

from regard.tasks.classification.data import EncodedText
from regard.tasks.labels import LabelPrediction

# Tokens up to which each is left out in turn, so many at once.
MOST_LEFT_OUT, _ROWS = 256, 32


def odds_lost(
    encoded: EncodedText,
    answer: LabelPrediction,
    answers: Callable[[Sequence[EncodedText]], Sequence[LabelPrediction]],
) -> tuple[float, ...]:
    """How much the odds of the label fall without each token, as a logarithm.

    Args:
        encoded: The text.
        answer: Its label.
        answers: The labels of other texts, by the same model.
    """
    whole = _log_odds(answer.probabilities[answer.label])
    found: list[float] = []
    for first in range(0, len(encoded.ids), _ROWS):
        places = range(first, min(first + _ROWS, len(encoded.ids)))
        for each in answers([encoded.without(place) for place in places]):
            found.append(whole - _log_odds(each.probabilities[answer.label]))
    return tuple(found)


def _log_odds(share: float) -> float:
    kept = min(max(share, 1e-7), 1 - 1e-7)
    return math.log(kept / (1 - kept))
