"""The tree of errors a user can meet; each is also the builtin a caller would catch.

A message reads ``{name} must {rule}; got {what came}. {cure}``. The command line prints it as one
line and exits with 2; every other exception is a bug of ours and keeps its traceback.
"""


class RegardError(Exception):
    """Anything regard refuses, with the cure in the message."""


class ShapeError(RegardError, ValueError):
    """Tensors whose shapes or dtypes do not fit together."""


class SettingError(RegardError, ValueError):
    """A setting, recipe line or option that is unknown or out of range."""


class DataError(RegardError, ValueError):
    """Text or a file that cannot be used as it is; names ``file:line`` where there is one."""


class RunError(RegardError, RuntimeError):
    """A run folder that is missing, damaged, in use, or made by a newer version."""


class TrainingError(RegardError, RuntimeError):
    """Training cannot go on: the loss is not finite, or the disk is full."""


class ProcessLost(RegardError, ConnectionError):  # noqa: N818  (it is another one that erred)
    """Another process of the same training is gone, and has not said why."""


class ReportedElsewhere(RegardError, RuntimeError):  # noqa: N818  (the error is another one's)
    """Another process of the same training has failed, and has told why."""


class OutOfMemory(RegardError, MemoryError):  # noqa: N818  (torch and Python have the other name)
    """Work does not fit into the memory of the device; says what would."""


class Interrupted(RegardError, KeyboardInterrupt):  # noqa: N818  (not an error of anyone's)
    """Work was asked to stop, and stopped where it can go on later."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("Stopped.")
        self.signal_number = signal_number
