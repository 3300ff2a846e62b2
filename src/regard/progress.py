"""Ambient progress of long work, such as reading or encoding; silent unless a display is set.

Long work names itself and counts its steps; a command on a terminal draws a bar of it, and a
caller of the library sees nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import TextIO, TypeVar

T = TypeVar("T")

# Adds to the count of steps done.
Advance = Callable[[float], None]
# Shows work of a name and a total, which is None where it is unknown.
Display = Callable[[str, float | None], AbstractContextManager[Advance]]

_display: ContextVar[Display | None] = ContextVar("display", default=None)
# Items between two advances.
_EVERY = 128


@contextmanager
def displaying(display: Display | None) -> Iterator[None]:
    """Show progress on a display inside the block, in this thread; None shows none."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def is_displayed() -> bool:
    """Whether progress is shown."""
    return _display.get() is not None


def progress(name: str, total: float | None = None) -> AbstractContextManager[Advance]:
    """Open a display of long work; gives the function that advances it. No total means unknown."""
    display = _display.get()
    return nullcontext(_ignore) if display is None else display(name, total)


def track(name: str, items: Iterable[T], total: int) -> Iterator[T]:
    """Iterate over items, advancing by their number."""
    if not is_displayed():
        yield from items
        return
    with progress(name, total) as advance:
        number = 0
        for number, item in enumerate(items, start=1):
            yield item
            if number % _EVERY == 0:
                advance(_EVERY)
        if remainder := number % _EVERY:
            advance(remainder)


class Lossy:
    """A stream for people: nothing ends because they no longer read it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write as much as the system takes."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Push it on, if it can be."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _ignore(count: float) -> None:
    """Show nothing."""
