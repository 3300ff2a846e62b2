"""Training: the loop, its settings, and the path from text to a run folder."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.training.callbacks import Callback as Callback
    from regard.training.callbacks import OngoingTraining as OngoingTraining
    from regard.training.callbacks import Update as Update
    from regard.training.callbacks import Validation as Validation
    from regard.training.reporters import ConsoleReporter as ConsoleReporter
    from regard.training.session import Trained as Trained
    from regard.training.settings import TrainingConfig as TrainingConfig
    from regard.training.start import resume as resume
    from regard.training.start import train as train

__getattr__ = _names(__name__, __file__)
