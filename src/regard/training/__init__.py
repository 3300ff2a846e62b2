"""Training: the loop, its settings, and the path from text to a run folder."""

from regard.training.progress import ConsoleReporter, Reporter
from regard.training.settings import TrainingConfig
from regard.training.start import Trained, resume, train, with_test
from regard.training.trainer import Trainer

__all__ = [
    "ConsoleReporter",
    "Reporter",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "resume",
    "train",
    "with_test",
]
