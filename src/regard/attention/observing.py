"""Who is watching: how anyone sees the attention inside a model without changing it.

``attend`` tells the observer, if there is one, what it was called with; a model says where it is
with ``at``. Nothing is computed for the observer: what it wants, it works out itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from threading import Lock
from types import TracebackType

from jaxtyping import Float
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.mask import Mask
from regard.attention.scores import Score
from regard.attention.weighting import Weighting


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One call of ``attend``: enough to work its weights out again with ``weights``.

    Attributes:
        kind: What attends to what: "encoder", "decoder" or "cross"; "" if no model said.
        layer: Which layer, from 0; -1 if no model said.
        query: The queries, as they were given.
        key: The keys.
        score: How they match.
        mask: Which keys were visible.
        bias: What was added to the scores.
        weighting: How scores became weights.
    """

    kind: str
    layer: int
    query: Float[Tensor, "*batch N D"]
    key: Float[Tensor, "*keys M D"]
    score: Score
    mask: Mask | None
    bias: Float[Tensor, "..."] | PositionBias | None
    weighting: Weighting


Observer = Callable[[Seen], None]

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)
_place: ContextVar[tuple[str, int]] = ContextVar("place", default=("", -1))

# How many observe, in whatever thread. A compiler cannot read a context variable, yet what it made
# of a model while nobody watched must not go on once somebody does; a plain number it guards.
_watchers = 0
_counting = Lock()


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Show every call of ``attend`` inside the block to ``observer``.

    Only calls of the same thread (strictly, the same context) are seen. While anyone observes,
    ``attend`` in a function that ``torch.compile`` made runs outside of the compiled graphs.

    Example:
        >>> import torch
        >>> from regard.attention.attend import attend
        >>> seen = []
        >>> with observe(seen.append), at("cross", 3):
        ...     _ = attend(torch.zeros(1, 4), torch.zeros(2, 4))
        >>> seen[0].kind, seen[0].layer
        ('cross', 3)
    """
    token = _observer.set(observer)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _observer.reset(token)


class at:  # noqa: N801  (reads as the word it is: with at("cross", 3))
    """Name the place for whoever observes: ``with at("cross", 3): attend(...)``.

    Costs next to nothing when nobody does.

    Args:
        kind: What attends to what: "encoder", "decoder" or "cross".
        layer: Which layer, from 0.
    """

    __slots__ = ("_token", "place")

    def __init__(self, kind: str, layer: int) -> None:
        self.place = (kind, layer)
        self._token: Token[tuple[str, int]] | None = None

    def __enter__(self) -> None:
        is_seen = _watchers and _observer.get() is not None
        self._token = _place.set(self.place) if is_seen else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _place.reset(self._token)


def is_watched() -> bool:
    """Whether anyone observes, perhaps in another thread; a compiler can ask."""
    return _watchers > 0


def current_observer() -> Observer | None:
    """Who is watching, or None."""
    return _observer.get()


def current_place() -> tuple[str, int]:
    """The kind and layer that ``at`` named last."""
    return _place.get()


def _count(change: int) -> None:
    global _watchers  # noqa: PLW0603  (guarded by compilers, see above)
    with _counting:
        _watchers += change
