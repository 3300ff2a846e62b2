"""A trained run in use: text in, text and attention out, evaluation."""

from regard.inference.look import AttentionMap, Look
from regard.inference.predictor import Predictor
from regard.tasks.translations import Translation

__all__ = ["AttentionMap", "Look", "Predictor", "Translation"]
