"""Answers that take no model, to stand beside every model's."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.baselines.kneser_ney import KneserNey
    from regard.tasks.baselines.naive_bayes import NaiveBayes
    from regard.tasks.baselines.sentence_graph import text_rank
    from regard.tasks.baselines.sliding_window import SlidingWindow
    from regard.tasks.baselines.word_overlap import WordOverlap

__all__ = ["KneserNey", "NaiveBayes", "SlidingWindow", "WordOverlap", "text_rank"]

__getattr__ = _names(__name__, __file__)
