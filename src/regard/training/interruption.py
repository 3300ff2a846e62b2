"""Stopping when asked to: at the next safe moment, with nothing lost."""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, NoReturn

from regard.errors import Interrupted


class Interruption:
    """Turns the first Ctrl-C or SIGTERM into a request; a second one ends the process at once.

    Example:
        >>> with Interruption() as interruption:
        ...     interruption.requested
        False
    """

    def __init__(self) -> None:
        self.requested = False
        self._signal: int = signal.SIGINT
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def leave(self) -> NoReturn:
        """End, as the signal asked."""
        raise Interrupted(self._signal)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            # Impatience: die by the signal itself, as if nobody had caught it.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.requested = True
        self._signal = number
