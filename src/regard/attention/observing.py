"""Observers and editors of the attention calls inside a model.

``attend`` passes its arguments to the observer, if there is one; a model says where it is with
``at``. Nothing is computed for the observer, which works out itself all it needs. An editor is
called in the same way, and may hide more keys and change the answer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from threading import Lock
from types import TracebackType
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, Request, make_request, make_weights_request
from regard.attention.inspect.head_scores import HeadScores, scores_of
from regard.attention.inspect.summarize import Queries, summary_and_mixed_of, summary_of
from regard.attention.inspect.summary import Summary
from regard.attention.inspect.weights import Positions, matrix_of, rows_of, transposed_of
from regard.attention.masks.base import Mask, as_mask
from regard.attention.scores.base import Score
from regard.attention.weighting import Weighting

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Mixed:
    """Output (*batch, N, E) of a call, and the values (*values, M, E) that it mixes."""

    out: Tensor | None = None
    value: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCall:
    """A call of ``attend`` as observers receive it: enough to work its weights out again.

    Attributes:
        kind: Kind of attention: "encoder", "decoder" or "cross"; "" if no model said.
        layer: Which layer, from 0; -1 if no model said.
        query: The queries, as they were given.
        key: The keys.
        score: How they match.
        mask: Which keys were visible.
        bias: The term added to the scores; None adds nothing.
        weighting: How scores became weights.
        mixed: While it is shown to an observer, its values, if those alone are wanted: an observer
            that mixes them on its way saves ``attend`` the work.

    Example:
        >>> import torch
        >>> from regard.attention import attend, observe
        >>> calls = []
        >>> with observe(calls.append):
        ...     _ = attend(torch.zeros(1, 4), torch.zeros(2, 4))
        >>> calls[0].weights()
        tensor([[0.5000, 0.5000]])
    """

    kind: str
    layer: int
    query: Float[Tensor, "*batch N D"]
    key: Float[Tensor, "*keys M K"]
    score: Score
    mask: Mask | None
    bias: Float[Tensor, "..."] | PositionBias | None
    weighting: Weighting
    mixed: Mixed | None = field(default=None, compare=False, repr=False)

    def weights(self) -> Float[Tensor, "*b N M"]:
        """The whole matrix of its weights; see :func:`regard.attention.weights`."""
        return matrix_of(self.request())

    def rows(self, positions: Positions) -> Float[Tensor, "*b P M"]:
        """The weights of some queries; see :func:`regard.attention.rows`."""
        return rows_of(self.request(), positions)

    def summary(
        self,
        *,
        top: int = 8,
        map: int = 64,  # noqa: A002  (its name everywhere else)
        queries: Queries | None = None,
        start: tuple[int, int] = (0, 0),
    ) -> Summary:
        """Summary of its weights; see :func:`regard.attention.summarize`, which has the options.

        Example:
            >>> import torch
            >>> from regard.attention import attend, observe
            >>> calls = []
            >>> with observe(calls.append):
            ...     _ = attend(torch.ones(1, 1), torch.tensor([[0.0], [3.0]]))
            >>> seen = calls[0].summary(top=1)
            >>> seen.top_keys.tolist(), seen.top_weights
            ([[1]], tensor([[0.9526]]))
        """
        return summary_of(self.request(), top, map, queries, start)

    def summary_in_passing(
        self,
        *,
        top: int,
        map: int,  # noqa: A002  (its name everywhere else)
        queries: Queries | None,
        start: tuple[int, int],
    ) -> Summary:
        """Its summary, and where one pass gives both and is to, its output: ``mixed.out``."""
        if self.mixed is not None and self.mixed.value is not None:
            options = CallOptions(self.score, self.mask, self.bias, self.weighting)
            request = make_request(Call(self.query, self.key, self.mixed.value, options))
            both = summary_and_mixed_of(request, top, map, queries, start)
            if both is not None:
                summary, self.mixed.out = both
                return summary
        return self.summary(top=top, map=map, queries=queries, start=start)

    def head_scores(
        self,
        tokens: Sequence[str] | Sequence[int] | Tensor,
        *,
        links: Iterable[tuple[int, int]] | None = None,
        tree: Sequence[int] | None = None,
        summary: Summary | None = None,
    ) -> HeadScores:
        """Weights of heads on known kinds of keys; see :func:`regard.attention.head_scores`."""
        return scores_of(self.request(), tokens, links, tree, summary)

    def transposed(self, states: Float[Tensor, "... N E"]) -> Float[Tensor, "*b M E"]:
        """``weightsᵀ · states``: for each key, the queries' states by how much they look at it.

        Of states that are all one, that is the mass a key receives; of one query's, its row. Memory
        grows with N; differentiable, once. ``states`` broadcasts to (*batch, heads, N, E).
        """
        return transposed_of(self.request(), states)

    def request(self) -> Request:
        """Return the call as a request to the engine, without values."""
        options = CallOptions(self.score, self.mask, self.bias, self.weighting)
        return make_weights_request(self.query, self.key, options)


Observer = Callable[[AttentionCall], None]


class Edit(NamedTuple):
    """Replacement of one call of ``attend`` by an editor: its mask, inputs, and answer."""

    mask: Mask | None
    # Makes another answer (*batch, N, E) of the answer and the values (*values, M, E).
    finish: Callable[[Tensor, Tensor], Tensor] | None = None
    query: Tensor | None = None  # in place of the given queries
    key: Tensor | None = None
    value: Callable[[Tensor], Tensor] | None = None  # makes other values of those given

    def inputs(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the inputs with the edits."""
        value = value if self.value is None else self.value(value)
        return (
            query if self.query is None else self.query,
            key if self.key is None else self.key,
            value,
        )

    def applied_to(self, call: AttentionCall) -> AttentionCall:
        """Return the call with the edits."""
        query, key, _ = self._replace(value=None).inputs(call.query, call.key, call.key)
        return replace(call, mask=self.mask, query=query, key=key)

    def then(self, edit: "Edit") -> "Edit":
        """Return this edit and another one, which was made of the call with this."""
        one, two, before, after = self.finish, edit.finish, self.value, edit.value
        finish, value = two or one, after or before
        if one is not None and two is not None:
            finish = lambda out, mixed: two(one(out, mixed), mixed)  # noqa: E731
        if before is not None and after is not None:
            value = lambda given: after(before(given))  # noqa: E731
        query = self.query if edit.query is None else edit.query
        return Edit(edit.mask, finish, query, self.key if edit.key is None else edit.key, value)


# Edits of a call of ``attend``; None leaves the call alone.
Editor = Callable[[AttentionCall], Edit | None]

OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)
EDITOR: ContextVar[Editor | None] = ContextVar("editor", default=None)
_location: ContextVar[tuple[str, int] | None] = ContextVar("location", default=None)

# State that a compiler can follow, unlike context variables: how many observe and edit, in
# whatever thread, and the location that was named last where it traces.
_counts = {"observers": 0, "editors": 0}
_is_watched = False
_is_edited = False
_traced_location = ("", -1)
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
    with _active(OBSERVER, observer, "observers"):
        yield


@contextmanager
def editing(editor: Editor) -> Iterator[None]:
    """Ask ``editor`` about every call of ``attend`` of this thread inside, before it is served."""
    # Whoever observes is shown the edited mask. Compiled functions leave their graph for it.
    with _active(EDITOR, editor, "editors"):
        yield


@contextmanager
def _active(variable: ContextVar[T | None], value: T, role: str) -> Iterator[None]:
    """Set a context variable inside the block, and count it for compilers."""
    token = variable.set(value)
    _count(role, 1)
    try:
        yield
    finally:
        _count(role, -1)
        variable.reset(token)


class at:  # noqa: N801  (reads as the word it is: with at("cross", 3))
    """Name the location for observers: ``with at("cross", 3): attend(...)``.

    Costs next to nothing when nobody does.

    Args:
        kind: Kind of attention: "encoder", "decoder" or "cross".
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

    __slots__ = ("_before", "_token", "location")

    def __init__(self, kind: str, layer: int) -> None:
        self.location = (kind, layer)
        self._before = _traced_location
        self._token: Token[tuple[str, int] | None] | None = None

    def __enter__(self) -> None:
        if torch.compiler.is_compiling():
            self._before = _trace(self.location)
        else:
            is_idle = OBSERVER.get() is None and EDITOR.get() is None
            self._token = None if is_idle else _location.set(self.location)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if torch.compiler.is_compiling():
            _trace(self._before)
        elif self._token is not None:
            _location.reset(self._token)


def announce(
    query: Tensor, key: Tensor, options: CallOptions, mixed: Mixed | None = None
) -> Edit | None:
    """Ask the editor about a call of ``attend``, and show the observer the edited call.

    ``mixed`` has the values; an observer may leave the output there, unless the call was edited.
    """
    observer, editor, edit = OBSERVER.get(), EDITOR.get(), None
    if observer is None and editor is None:
        return None
    score, mask, bias, weighting, *_ = options
    mask = None if mask is None else as_mask(mask)
    call = AttentionCall(*current_location(), query, key, score, mask, bias, weighting, mixed)
    if editor is not None and (edit := editor(call)) is not None:
        call = replace(edit.applied_to(call), mixed=None)
    if observer is not None:
        observer(call)
    if mixed is not None:
        mixed.value = None  # an observer that keeps calls does not keep values
    return edit


def is_watched() -> bool:
    """Whether anyone observes, perhaps in another thread; a compiler can ask."""
    return _is_watched


def is_edited() -> bool:
    """Whether anyone edits, perhaps in another thread; a compiler can ask."""
    return _is_edited


def current_editor() -> Editor | None:
    """Return the active editor, or None."""
    return EDITOR.get()


def current_observer() -> Observer | None:
    """Return the active observer, or None."""
    return OBSERVER.get()


def current_location() -> tuple[str, int]:
    """The kind and layer that ``at`` named last."""
    if torch.compiler.is_compiling() or (location := _location.get()) is None:
        return _traced_location
    return location


def _trace(location: tuple[str, int]) -> tuple[str, int]:
    """Name a location to a compiler; gives the one before."""
    global _traced_location
    before, _traced_location = _traced_location, location
    return before


def _count(role: str, change: int) -> None:
    global _is_watched, _is_edited
    with _counting:
        _counts[role] += change
        _is_watched, _is_edited = _counts["observers"] > 0, _counts["editors"] > 0
