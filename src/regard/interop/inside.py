"""Inside a model: which of its modules is attending, and to what.

Hugging Face models say so in every call. For all others, modules are followed as they are entered
and left.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import Cover, Mask, Seen
from regard.interop.hugging_face import current_call, is_hugging_face, pretrained, switched
from regard.interop.lazy_mask import LazyMask
from regard.interop.places import place_of, settle
from regard.layers import MultiHeadAttention


class Site(NamedTuple):
    """What a call of ``attend`` is, in the model it was made in.

    Attributes:
        kind: "encoder", "decoder" or "cross".
        layer: Which layer, from 0.
        name: The module's name.
        first: The place of query 0 among all keys, also those that a cache holds no more.
        gone: How many keys a cache holds no more.
        lazy: The mask of a Hugging Face model, or None.
    """

    kind: str
    layer: int
    name: str
    first: int
    gone: int
    lazy: LazyMask | None


class _Entered(NamedTuple):
    """A module that is being computed.

    Attributes:
        module: The module.
        is_of_two: Whether it is an attention whose keys are given apart from its queries.
    """

    module: nn.Module
    is_of_two: bool


# What the first two arguments of ``MultiHeadAttention`` are called.
_OF_OURS = ("states", "memory")

_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("entered", default=())


@contextmanager
def reached(model: nn.Module) -> Iterator[None]:
    """Lets ``site_of`` know where in a model a call is made, inside the block.

    Hugging Face models are served by the engine meanwhile.
    """
    settle(model)
    theirs = {id(module) for part in pretrained(model) for module in part.modules()}
    handles = []
    try:
        for module in model.modules():
            if id(module) not in theirs:
                handles.append(module.register_forward_pre_hook(_enter, with_kwargs=True))
                handles.append(module.register_forward_hook(_leave, always_call=True))
        if is_hugging_face(model):
            with switched(model):
                yield
        else:
            yield
    finally:
        for handle in handles:
            handle.remove()


def site_of(seen: Seen) -> Site:
    """What a call is, that an observer or an editor is shown."""
    N, M = seen.query.shape[-2], seen.key.shape[-2]
    call = current_call()
    if call is not None:
        place, lazy = call.place, call.lazy
        gone = 0 if lazy is None or seen.kind == "cross" else lazy.frame.key_start
        first = M - N if lazy is None else lazy.frame.query_start
        return Site(seen.kind, place.layer, place.name, first, gone, lazy)
    entered = _entered.get()
    kind, layer, name = seen.kind, seen.layer, ""
    if entered:
        place = place_of(entered[-1].module)
        name, layer = place.name, place.layer if layer < 0 else layer
    if not kind:
        is_cross = bool(entered) and entered[-1].is_of_two
        kind = "cross" if is_cross or N > M else "decoder" if _looks_back(seen) else "encoder"
    return Site(kind, layer, name, M - N, 0, None)


def counted_of(seen: Seen, site: Site) -> Tensor | None:
    """Which queries (B, N) are no padding, as far as the mask says; None is all."""
    if site.kind == "cross":
        return None
    if site.lazy is not None:
        return site.lazy.counted(seen.query.device)
    N, M = seen.query.shape[-2], seen.key.shape[-2]
    if seen.mask is None or N != M or seen.query.dim() != 4:
        return None
    # Who is seen by nobody, not even by itself, is padding.
    bound = _bound(seen, seen.mask)
    hidden = bound.hidden
    return None if hidden is None else ~hidden[:, :, :, 0].all(dim=1).expand(len(seen.query), N)


def _bound(seen: Seen, mask: Mask) -> Any:
    *batch, H, N, _ = seen.query.shape
    return mask.bind(tuple(batch), H, N, seen.key.shape[-2], seen.query.device)


def _looks_back(seen: Seen) -> bool:
    """Whether the first query does not see the last key."""
    N, M = seen.query.shape[-2], seen.key.shape[-2]
    if seen.mask is None or seen.query.dim() < 3 or N < 2:
        return N == 1 < M
    tile = _bound(seen, seen.mask).tile(range(1), range(M - 1, M))
    return tile is Cover.NONE or (isinstance(tile, Tensor) and not bool(tile.any()))


def _enter(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    if torch.compiler.is_compiling():
        return
    other = None
    if isinstance(module, nn.MultiheadAttention | MultiHeadAttention):
        names = ("query", "key") if isinstance(module, nn.MultiheadAttention) else _OF_OURS
        asks, looked_at = (
            args[n] if n < len(args) else options.get(name) for n, name in enumerate(names)
        )
        other = None if looked_at is asks else looked_at
    _entered.set((*_entered.get(), _Entered(module, other is not None)))


def _leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
    if not torch.compiler.is_compiling():
        _entered.set(_entered.get()[:-1])
