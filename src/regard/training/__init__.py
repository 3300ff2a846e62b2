"""Training: the loop, its settings, and the path from text to a run folder."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.training.callbacks import Callback, OngoingTraining, Update, Validation
    from regard.training.reporters import ConsoleReporter
    from regard.training.session import Trained
    from regard.training.settings import TrainingConfig
    from regard.training.start import resume, train
    from regard.training.trainer import Trainer

__all__ = [
    "Callback",
    "ConsoleReporter",
    "OngoingTraining",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "Update",
    "Validation",
    "resume",
    "train",
]

__getattr__ = _names(__name__, __file__)
