"""A trained run in use: the run folder, text in and text out, evaluation."""

from regard.inference.checkpoints import Checkpoint, average
from regard.inference.files import DamageError, RunWarning
from regard.inference.look import AttentionMap, Look
from regard.inference.predictor import Predictor
from regard.inference.run import Run, is_run
from regard.inference.translations import Translation

__all__ = [
    "AttentionMap",
    "Checkpoint",
    "DamageError",
    "Look",
    "Predictor",
    "Run",
    "RunWarning",
    "Translation",
    "average",
    "is_run",
]
