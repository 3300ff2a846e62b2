"""Answers that take no model, to stand beside every model's."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.baselines.kneser_ney import KneserNey
    from regard.tasks.baselines.labels import NaiveBayes, WordOverlap
    from regard.tasks.baselines.sentences import SlidingWindow, text_rank

__all__ = ["KneserNey", "NaiveBayes", "SlidingWindow", "WordOverlap", "text_rank"]

__getattr__ = _names(__name__, __file__)
