"""Ambient progress of long work, such as reading or tokenizing; silent unless a listener is set.

Work that may take long says its name and, now and then, how much of it is done; a command that has
a terminal draws a bar of it, and whoever calls the library hears nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# What is told the share of some work that is done, from 0 to 1.
Tell = Callable[[float], None]
# Gives, for work of a name, what is told; as a context that ends with the work.
Watcher = Callable[[str], AbstractContextManager[Tell]]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
# Things between two reports.
_EVERY = 128


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Let work in the block be told to a watcher, in this thread; None lets nobody be told."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def is_watched() -> bool:
    """Whether somebody is told."""
    return _watcher.get() is not None


def working(name: str) -> AbstractContextManager[Tell]:
    """A context around long work, which gives what is told the share that is done.

    Example:
        >>> with working("reading") as tell:
        ...     tell(0.5)
    """
    watcher = _watcher.get()
    return nullcontext(_no_one) if watcher is None else watcher(name)


def counted(name: str, things: Iterable[T], total: int) -> Iterator[T]:
    """Iterate over items, reporting their number as progress.

    Example:
        >>> list(counted("encoding", "abc", 3))
        ['a', 'b', 'c']
    """
    if not is_watched():
        yield from things
        return
    with working(name) as tell:
        for number, thing in enumerate(things):
            if number % _EVERY == 0:
                tell(number / max(1, total))
            yield thing


def _no_one(share: float) -> None:
    """Nobody is told."""
