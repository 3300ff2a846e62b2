"""A trained run in use: text in, text and attention out, evaluation."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.inference.look import AttentionMap as AttentionMap
    from regard.inference.look import Look as Look
    from regard.inference.predictor import Predictor as Predictor
    from regard.inference.predictor import load as load
    from regard.tasks.sequences.translations import Translations as Translations

__getattr__ = _names(__name__, __file__)
