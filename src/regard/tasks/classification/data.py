"""Labelled texts: where they are, what they are to a model, and what each token is to a label."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, Int32
from torch import Tensor

from regard.tasks.labels import LabelPrediction

# Tokens up to which each is left out in turn, so many at once.
MOST_LEFT_OUT, _ROWS = 256, 32


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and its label.

    Attributes:
        text: Normalised.
        label: None where it is asked for.
        aspect: What of the text is asked about; None where nothing is.
        where: ``file:line`` it was read at.

    Example:
        >>> from regard.tasks.classification import Classification
        >>> Classification.checked(LabelledText("很甜", "good", "水果", "goods.tsv:3")).parts
        ('水果: 很甜',)
    """

    text: str
    label: str | None
    aspect: str | None
    where: str


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text as ids.

    Attributes:
        ids: Of its tokens; of pieces, the end last, and the begin first if they have one.
        parts: Of each word's parts; None where words are not read from them.
        label: The label's number; -1 where it is not known.
        aspect: The aspect's number; 0 is that of aspects not met in training.

    Example:
        >>> text = EncodedText([7, 4, 9, 3], parts=None, label=1, aspect=0)
        >>> text.without(1).ids
        [7, 9, 3]
    """

    ids: list[int]
    parts: Int32[Tensor, "N L"] | None
    label: int
    aspect: int

    def without(self, place: int) -> "EncodedText":
        """The text without one of its tokens; of the only one, the text."""
        if len(self.ids) == 1:
            return self
        parts = self.parts
        if parts is not None:
            parts = torch.cat([parts[:place], parts[place + 1 :]])
        return replace(self, ids=[*self.ids[:place], *self.ids[place + 1 :]], parts=parts)


@dataclass(frozen=True, slots=True, eq=False)
class TextBatch:
    """Padded texts, batch first.

    Attributes:
        ids: Of their tokens.
        lengths: How many of each row are real.
        parts: Ids of the words' parts; None where words are not read from them.
        aspects: The aspects' numbers.
        labels: The labels' numbers; -1 where not known.
    """

    ids: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    parts: Int[Tensor, "B S L"] | None
    aspects: Int[Tensor, " B"]
    labels: Int[Tensor, " B"]


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
