"""Observers and editors of the attention calls inside a model.

``attend`` tells the observer, if there is one, what it was called with; a model says where it is
with ``at``. Nothing is computed for the observer: what it wants, it works out itself. An editor is
asked in the same way, and may hide more keys and change the answer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import replace
from threading import Lock
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.call import AttentionCall
from regard.attention.engine.options import CallOptions
from regard.attention.masks.base import Mask, as_mask

Observer = Callable[[AttentionCall], None]


class Edit(NamedTuple):
    """Replacement of one call of ``attend`` by an editor.

    Attributes:
        mask: Which keys are visible instead; None is all of them.
        finish: Makes another answer (*batch, N, E) of the answer and the values (*values, M, E);
            None leaves it as it is.
    """

    mask: Mask | None
    finish: Callable[[Tensor, Tensor], Tensor] | None


# Given what ``attend`` is called with; None leaves the call alone.
Editor = Callable[[AttentionCall], Edit | None]

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)
_editor: ContextVar[Editor | None] = ContextVar("editor", default=None)
_place: ContextVar[tuple[str, int] | None] = ContextVar("place", default=None)

# What a compiler cannot follow in context variables it can in these. How many observe and edit, in
# whatever thread, and the place that was named last where it traces.
_watchers = 0
_is_watched = False
_editors = 0
_is_edited = False
_traced_place = ("", -1)
_counting = Lock()


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Show every call of ``attend`` inside the block to ``observer``.

    Only calls of the same thread (strictly, the same context) are seen. Compiled functions are,
    too; they are compiled once more for it. An exported program is not.

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


@contextmanager
def editing(editor: Editor) -> Iterator[None]:
    """Ask ``editor`` about every call of ``attend`` inside the block, before it is served.

    Only calls of the same thread are edited. Whoever observes is shown the edited mask. Compiled
    functions leave their graph for it.

    Example:
        >>> import torch
        >>> from regard.attention.attend import attend
        >>> with editing(lambda seen: Edit(seen.mask, lambda out, value: out * 0)):
        ...     attend(torch.ones(1, 4), torch.ones(2, 4))
        tensor([[0., 0., 0., 0.]])
    """
    token = _editor.set(editor)
    _count_editors(1)
    try:
        yield
    finally:
        _count_editors(-1)
        _editor.reset(token)


class at:  # noqa: N801  (reads as the word it is: with at("cross", 3))
    """Name the place for whoever observes: ``with at("cross", 3): attend(...)``.

    Costs next to nothing when nobody does.

    Args:
        kind: What attends to what: "encoder", "decoder" or "cross".
        layer: Which layer, from 0.

    Example:
        >>> from regard.attention import attend
        >>> seen, states = [], torch.zeros(2, 4)
        >>> with observe(seen.append):
        ...     for layer in range(2):
        ...         with at("encoder", layer):
        ...             states = attend(states, states)
        >>> [(call.kind, call.layer) for call in seen]
        [('encoder', 0), ('encoder', 1)]
    """

    __slots__ = ("_before", "_token", "place")

    def __init__(self, kind: str, layer: int) -> None:
        self.place = (kind, layer)
        self._before = _traced_place
        self._token: Token[tuple[str, int] | None] | None = None

    def __enter__(self) -> None:
        if torch.compiler.is_compiling():
            self._before = _trace(self.place)
        else:
            is_idle = _observer.get() is None and _editor.get() is None
            self._token = None if is_idle else _place.set(self.place)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if torch.compiler.is_compiling():
            _trace(self._before)
        elif self._token is not None:
            _place.reset(self._token)


def announce(query: Tensor, key: Tensor, options: CallOptions) -> Edit | None:
    """Ask the editor about a call of ``attend``, and tell the observer what came of it."""
    observer, editor, edit = _observer.get(), _editor.get(), None
    if observer is None and editor is None:
        return None
    score, mask, bias, weighting, *_ = options
    mask = None if mask is None else as_mask(mask)
    seen = AttentionCall(*current_place(), query, key, score, mask, bias, weighting)
    if editor is not None and (edit := editor(seen)) is not None:
        seen = replace(seen, mask=edit.mask)
    if observer is not None:
        observer(seen)
    return edit


def is_watched() -> bool:
    """Whether anyone observes, perhaps in another thread; a compiler can ask."""
    return _is_watched


def is_edited() -> bool:
    """Whether anyone edits, perhaps in another thread; a compiler can ask."""
    return _is_edited


def current_editor() -> Editor | None:
    """Return the active editor, or None."""
    return _editor.get()


def current_observer() -> Observer | None:
    """Return the active observer, or None."""
    return _observer.get()


def current_place() -> tuple[str, int]:
    """The kind and layer that ``at`` named last."""
    if torch.compiler.is_compiling() or (place := _place.get()) is None:
        return _traced_place
    return place


def _trace(place: tuple[str, int]) -> tuple[str, int]:
    """Name a place to a compiler; gives the one before."""
    global _traced_place
    before, _traced_place = _traced_place, place
    return before


def _count(change: int) -> None:
    global _watchers, _is_watched  # noqa: PLW0603  (see above)
    with _counting:
        _watchers += change
        _is_watched = _watchers > 0


def _count_editors(change: int) -> None:
    global _editors, _is_edited  # noqa: PLW0603  (see above)
    with _counting:
        _editors += change
        _is_edited = _editors > 0
