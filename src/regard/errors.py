"""The tree of errors a user can meet; each is also the builtin a caller would catch.

::

    RegardError
    ├── SettingError       ValueError
    ├── DataError          ValueError
    ├── ShapeError         ValueError
    ├── TokenError         IndexError
    ├── RunError           RuntimeError
    │   └── DamageError    of regard.runs
    ├── TrainingError      RuntimeError
    ├── OutOfMemory        MemoryError
    ├── ProcessLost        ConnectionError
    ├── ReportedElsewhere  RuntimeError
    ├── Interrupted        KeyboardInterrupt
    └── CheckError         AssertionError, of regard.attention.testing

A message reads ``{name} must {rule}; got {value}. {cure}``. The command line prints it as one
line and exits with 2; every other exception is a bug of ours and keeps its traceback.
"""

import re

# Characters of a value that a message quotes.
_LONGEST = 200
# Control characters that a terminal obeys instead of showing them, but for tab and line feed; and
# halves of characters, which no stream can encode, but for those that stand for bytes of a file's
# name.
_CONTROLS = "\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udc7f\udd00-\udfff"
_CONTROL = re.compile(f"[{_CONTROLS}]")
# Besides, marks that turn the order of the text around them, or end its line.
_MARKS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL_OR_MARK = re.compile(f"[{_CONTROLS}{_MARKS}]")


def printable(text: str, *, is_data: bool = False) -> str:
    """Spell control characters as JSON does; marks of direction stay in data, as in Arabic."""
    control = _CONTROL if is_data else _CONTROL_OR_MARK
    return control.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def excerpt(value: object) -> str:
    """Return a value as a message quotes it, shortened where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no longer ones
        text = "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class RegardError(Exception):
    """Anything regard refuses, with the cure in the message."""

    def __str__(self) -> str:
        return printable(super().__str__())


class ShapeError(RegardError, ValueError):
    """Tensors whose shapes or dtypes do not fit together."""


class TokenError(RegardError, IndexError):
    """Token ids that a model does not have."""


class SettingError(RegardError, ValueError):
    """A setting, recipe line or option that is unknown or out of range."""


class DataError(RegardError, ValueError):
    """Text or a file that cannot be used as it is; names ``file:line`` where there is one."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason  # by which lines that are skipped are counted


class RunError(RegardError, RuntimeError):
    """A run folder that is missing, damaged, in use, or made by a newer version."""


class TrainingError(RegardError, RuntimeError):
    """Training cannot go on: the loss is not finite, or the disk is full."""


class ProcessLost(RegardError, ConnectionError):  # noqa: N818  (it is another one that erred)
    """Another process of the same training is gone, and has not said why."""


class ReportedElsewhere(RegardError, RuntimeError):  # noqa: N818  (the error is another one's)
    """Another process of the same training has failed, and has told why."""


class OutOfMemory(RegardError, MemoryError):  # noqa: N818  (torch and Python have the other name)
    """Work does not fit into the memory of the device; the message says how it would."""


class Interrupted(RegardError, KeyboardInterrupt):  # noqa: N818  (not an error of anyone's)
    """Work was asked to stop, and stopped where it can go on later."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("Stopped.")
        self.signal_number = signal_number
