"""The run folder: what one training leaves, whole at every moment, and what reads it."""

from regard.runs.bundle import is_bundle
from regard.runs.card import SUFFIX, is_run
from regard.runs.checkpoints import Checkpoint, average
from regard.runs.files import DamageError, RunWarning
from regard.runs.run import Run

__all__ = [
    "SUFFIX",
    "Checkpoint",
    "DamageError",
    "Run",
    "RunWarning",
    "average",
    "is_bundle",
    "is_run",
]
