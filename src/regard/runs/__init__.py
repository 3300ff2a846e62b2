"""The run folder: what one training leaves, whole at every moment, and what reads it."""

from regard.runs.checkpoints import Checkpoint, average
from regard.runs.files import DamageError, RunWarning
from regard.runs.run import Run, is_run

__all__ = ["Checkpoint", "DamageError", "Run", "RunWarning", "average", "is_run"]
