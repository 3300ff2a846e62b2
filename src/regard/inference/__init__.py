"""A trained run in use: text in, text and attention out, evaluation."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.inference.look import AttentionMap, Look
    from regard.inference.predictor import Predictor, load
    from regard.tasks.sequences.translations import Translations

__all__ = ["AttentionMap", "Look", "Predictor", "Translations", "load"]

__getattr__ = _names(__name__, __file__)
