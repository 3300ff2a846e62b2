"""Stopping when asked to: at the next safe moment, with nothing lost."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from regard.errors import Interrupted

# Ctrl-C; the signal of a system's shutdown; and of a closed terminal, where there is one.
_IMPATIENT = (signal.SIGINT, signal.SIGTERM)
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
# Set in the processes of torchrun.
_TORCHRUN = "TORCHELASTIC_RUN_ID"


class Interruption:
    """Turns a first Ctrl-C, SIGTERM or SIGHUP into a request to stop; a second one kills."""

    # A second SIGHUP does not, since the system and the shell both send one when a terminal is
    # closed, nor does a second SIGTERM under torchrun, which sends one to all when a process has
    # left. SIGHUP that is ignored, as under ``nohup``, stays ignored.

    def __init__(self) -> None:
        self.requested = False
        self._signal: int = signal.SIGINT
        self._leaves_at_once = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in self._signals():
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def leave(self) -> NoReturn:
        """End, as the signal asked."""
        raise Interrupted(self._signal)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Leave on a signal from wherever the block is: for work that changes nothing."""
        self._leaves_at_once = True
        try:
            yield
        finally:
            self._leaves_at_once = False

    @staticmethod
    def _signals() -> list[signal.Signals]:
        if _HANGUP is None or signal.getsignal(_HANGUP) == signal.SIG_IGN:
            return [*_IMPATIENT]
        return [*_IMPATIENT, _HANGUP]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        is_torchruns = number == signal.SIGTERM and _TORCHRUN in os.environ
        if self.requested and number != _HANGUP and not is_torchruns:
            # Impatience: die by the signal itself, as if nobody had caught it.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if not self.requested:
            self.requested, self._signal = True, number
            if self._leaves_at_once:
                self.leave()
