"""Inside a model: which of its modules is attending, and to what.

Hugging Face models say so in every call. For all others, modules are followed as they are entered
and left.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import AttentionCall, Cover, Mask
from regard.attention.masks.bound import BoundMask
from regard.interop.hugging_face import current_call, own_parts, pretrained, switched
from regard.interop.lazy_mask import LazyMask
from regard.interop.own_attention import read_weights
from regard.interop.places import Arguments, Options, place_of, settle
from regard.interop.progress import Progress
from regard.layers import MultiHeadAttention


class Site(NamedTuple):
    """Location of a call of ``attend`` in its model.

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


class ForwardTrace:
    """Location inside a model's block, as far as its modules tell.

    Attributes:
        forwards: How often the model, or a Hugging Face model in it, was called.
        unseen: Names and classes of modules that attended by themselves, past the engine.
        is_elsewhere: Whether the model was called in another thread, where nothing is seen.
        progress: Which pass over a text it has come to.
    """

    def __init__(self, model: nn.Module | None = None) -> None:
        self.forwards = 0
        self._members = set() if model is None else {id(each) for each in model.modules()}
        self.unseen: dict[str, str] = {}
        self.is_elsewhere = False
        self.progress = Progress()
        self._thread = threading.get_ident()
        self._calls = 0
        self._begun: list[int] = []
        self._last: tuple[int, Site, AttentionCall] | None = None

    def located(self, seen: AttentionCall) -> tuple[Site, int, bool]:
        """Note a call of ``attend``: what it is, where its queries begin, whether it is again one.

        The layer of the first is the model's, also where one module is all layers.
        """
        site = site_of(seen)
        is_again = self._is_again(seen, site)
        if is_in_backward():  # of a checkpoint, which computes a forward again
            return site, site.first if site.kind == "decoder" else 0, is_again
        layer, start = self.progress.place_of(
            (site.kind, site.layer, site.name),
            seen.query.shape[-2],
            site.first,
            forward=self.forwards,
            is_again=is_again,
        )
        return site._replace(layer=layer), start, is_again

    def _is_again(self, seen: AttentionCall, site: Site) -> bool:
        """Whether a call is the last one again, with other values.

        Differential attention mixes two values by the same weights.
        """
        self._calls += 1
        last, self._last = self._last, (self.forwards, site, seen)
        if last is None or not last[0] == self.forwards > 0 or last[1][:3] != site[:3]:
            return False
        return _is_same(seen, last[2])

    def is_ours(self) -> bool:
        """Whether the call that is made now is the model's, as far as its modules tell."""
        call, entered = current_call(), _entered.get()
        if call is not None:
            return id(call.module) in self._members
        return not entered or id(entered[-1].module) in self._members

    def begin(self, module: nn.Module, args: Arguments) -> None:
        """A forward of the whole model begins."""
        if torch.compiler.is_compiling():
            return
        if threading.get_ident() == self._thread:
            self.forwards += 1
        else:
            self.is_elsewhere = True

    def enter(self, module: nn.Module, args: Arguments) -> None:
        """A module that attends begins."""
        if self._is_followed():
            self._begun.append(self._calls)

    def leave(self, module: nn.Module, args: Arguments, output: object) -> None:
        """It ends: it has called the engine, or it attends by itself."""
        if not self._is_followed() or not self._begun:
            return
        if self._begun.pop() == self._calls and output is not None:
            self.unseen[place_of(module).name] = type(module).__name__

    def _is_followed(self) -> bool:
        """Whether what modules do now is seen: not what a graph does, nor another thread."""
        if torch.compiler.is_compiling() or is_in_backward():
            return False
        return threading.get_ident() == self._thread


# How classes of attention modules are called.
_ATTENTION = re.compile(r"Attention\d?$")

# What the first two arguments of ``MultiHeadAttention`` are called.
_OF_OURS = ("states", "memory")

_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("entered", default=())


@contextmanager
def reached(model: nn.Module, *, reads: bool = False) -> Iterator[ForwardTrace]:
    """Lets ``site_of`` know where in a model a call is made, inside the block.

    Hugging Face models are served by the engine meanwhile.

    Args:
        model: The model.
        reads: Whether those that compute their own attention have their weights read instead.
    """
    settle(model)
    parts, passage = pretrained(model), ForwardTrace(model)
    own = own_parts(model) if reads else []
    left = {id(module) for part in own for module in part.modules()}
    theirs = {id(module) for part in parts for module in part.modules()}
    handles = []
    try:
        for module in model.modules():
            if id(module) not in theirs:
                handles.append(module.register_forward_pre_hook(_enter, with_kwargs=True))
                handles.append(module.register_forward_hook(_leave, always_call=True))
        for part in {id(each): each for each in (model, *parts)}.values():
            handles.append(part.register_forward_pre_hook(passage.begin))
        for module in model.modules():
            if id(module) not in left and _is_attention(module):
                handles.append(module.register_forward_pre_hook(passage.enter))
                handles.append(module.register_forward_hook(passage.leave, always_call=True))
        if parts:
            with switched(model, but=own), read_weights(own):
                yield passage
        else:
            yield passage
    finally:
        for handle in handles:
            handle.remove()


def is_in_backward() -> bool:
    """Whether gradients are being computed in this thread: torch has no public word for it."""
    return bool(torch._C._current_graph_task_id() != -1)


def site_of(seen: AttentionCall) -> Site:
    """Locate a call for an observer or an editor."""
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


def counted_of(seen: AttentionCall, site: Site) -> Tensor | None:
    """Mask of queries (B, N) that are no padding, as far as the mask says; None is all."""
    if site.kind == "cross":
        return None
    if site.lazy is not None:
        return site.lazy.counted(seen.query.device)
    N, M = seen.query.shape[-2], seen.key.shape[-2]
    if seen.mask is None or N != M or seen.query.dim() != 4:
        return None
    # Who is seen by nobody, not even by itself, is padding.
    bound = _bound(seen, seen.mask)
    hidden = bound.unseen
    return None if hidden is None else ~hidden[:, :, :, 0].all(dim=1).expand(len(seen.query), N)


def _bound(seen: AttentionCall, mask: Mask) -> BoundMask:
    *batch, H, N, _ = seen.query.shape
    return mask.bind(tuple(batch), H, N, seen.key.shape[-2], seen.query.device)


def _looks_back(seen: AttentionCall) -> bool:
    """Whether the first query does not see the last key."""
    N, M = seen.query.shape[-2], seen.key.shape[-2]
    if seen.mask is None or seen.query.dim() < 3 or N < 2:
        return N == 1 < M
    tile = _bound(seen, seen.mask).tile(range(1), range(M - 1, M))
    return tile is Cover.NONE or (isinstance(tile, Tensor) and not bool(tile.any()))


def _is_attention(module: nn.Module) -> bool:
    """Whether a module attends itself, by the name of its class, and not through one inside it."""
    named = [_ATTENTION.search(type(each).__name__) for each in module.modules()]
    return bool(named[0]) and not any(named[1:])


def _is_same(one: AttentionCall, other: AttentionCall) -> bool:
    """Whether two calls have the same weights, by the memory of what they are made of."""
    return (
        one.mask is other.mask
        and one.bias is other.bias
        and one.score == other.score
        and _is_memory(one.query, other.query)
        and _is_memory(one.key, other.key)
    )


def _is_memory(one: Tensor, other: Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() != 0 and one.shape == other.shape


def _enter(module: nn.Module, args: Arguments, options: Options) -> None:
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


def _leave(module: nn.Module, args: Arguments, output: object) -> None:
    if not torch.compiler.is_compiling():
        _entered.set(_entered.get()[:-1])
