"""A trained run in use: the run folder, text in and text out, evaluation."""

from regard.inference.checkpoints import Checkpoint, RunWarning, average
from regard.inference.files import DamageError
from regard.inference.run import Run, is_run

__all__ = ["Checkpoint", "DamageError", "Run", "RunWarning", "average", "is_run"]
