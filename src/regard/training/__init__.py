"""Training: the loop, its settings, and the path from text to a run folder."""

from regard.training.progress import ConsoleReporter, Reporter
from regard.training.settings import TrainingConfig
from regard.training.trainer import Trainer
from regard.training.translation import Trained, resume, train

__all__ = ["ConsoleReporter", "Reporter", "Trained", "Trainer", "TrainingConfig", "resume", "train"]
