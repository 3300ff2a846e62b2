"""Inside a model: which of its modules is attending, to which text, and in which pass over it.

Hugging Face models say so in every call. For all others, modules are followed as they are entered
and left.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from regard.attention import AttentionCall, Cover, Mask
from regard.attention.masks.bound import BoundMask
from regard.errors import SettingError
from regard.interop.modules.hooks import of_this_thread
from regard.interop.modules.hugging_face import eager_parts, is_hugging_face, pretrained, switched
from regard.interop.modules.lazy_mask import LazyMask
from regard.interop.modules.locations import (
    Arguments,
    Options,
    current_call,
    located,
    location_of,
)
from regard.interop.modules.own_attention import read_weights
from regard.interop.modules.torch_functions import check_compiled, functions_seen
from regard.interop.modules.torch_modules import EngineAttention
from regard.layers import MultiHeadAttention

Key = tuple[str, int, str]  # kind, layer and name of an attention


class RunInUse(Protocol):
    """A run in use, such as ``regard.load`` opens."""

    @property
    def model(self) -> nn.Module:
        """The model that attends."""


# Whose attention is reached: a module, or a run in use.
Attending: TypeAlias = nn.Module | RunInUse
_CURE = (
    "In a module of your own, call F.scaled_dot_product_attention, or mark the weights that it "
    "makes: weights = regard.mark_weights(scores.softmax(-1))."
)


class Site(NamedTuple):
    """Location of a call of ``attend`` in its model."""

    kind: str  # "encoder", "decoder" or "cross"
    layer: int  # from 0
    name: str
    first: int  # position of query 0 among all keys, those that a cache has dropped included
    dropped: int  # keys that a cache has dropped
    lazy: LazyMask | None


class _Entered(NamedTuple):
    """A module that is being computed."""

    module: nn.Module
    is_cross: bool  # an attention whose keys are given separately from its queries


class Progress:
    """Follows calls of attention: which are of one pass, a forward or a cached generation."""

    def __init__(self) -> None:
        self.number = 0  # of the pass
        self._ends: dict[Key, int] = {}  # position after the last query of each attention
        self._written: int | None = None  # position that the decoder has come to
        self._forward = 0
        # By kind, in the current forward: the module that was called last, and how many layers were
        # calls of a module that had been called before.
        self._last: dict[str, Key] = {}
        self._repeats: dict[str, int] = {}

    def locate(self, key: Key, queries: int, first: int, *, forward: int = 0) -> tuple[int, int]:
        """Return the layer of a call in a forward, and the position of its first query."""
        kind, layer, name = key
        if forward != self._forward:
            self._forward = forward
            self._last.clear()
            self._repeats.clear()
        if forward and self._last.get(kind) == key:
            end = self._ends.get((kind, layer + self._repeats.get(kind, 0), name))
            if end is not None and not self._continues(kind, end, queries, first):
                self._repeats[kind] = self._repeats.get(kind, 0) + 1
        self._last[kind] = key
        layer += self._repeats.get(kind, 0)
        return layer, self._start((kind, layer, name), queries, first)

    def _start(self, key: Key, queries: int, first: int) -> int:
        kind, end = key[0], self._ends.get(key)
        start = first if kind == "decoder" else 0
        if kind == "cross" and end is None and self._written is not None:
            start = max(0, self._written - queries)
        if end is not None:
            if self._continues(kind, end, queries, first):
                start = end
            else:
                self.number, self._written = self.number + 1, None
                self._ends.clear()
        self._ends[key] = start + queries
        if kind == "decoder":
            self._written = start + queries
        return start

    def _continues(self, kind: str, end: int, queries: int, first: int) -> bool:
        """Whether a call begins where the last one of the same attention ended."""
        if kind == "decoder":
            return first == end
        # Cross-attention follows its decoder; in one that does not look back, such as a recurrent
        # one, it goes one step at a time.
        if kind == "cross":
            return queries == 1 if self._written is None else end + queries == self._written
        return False


class ForwardTrace:
    """Location inside a model's block, as far as its modules tell."""

    def __init__(self, model: nn.Module | None = None) -> None:
        self.forwards = 0  # calls of the model, or of a Hugging Face model in it
        self._members = set() if model is None else {id(module) for module in model.modules()}
        self.unseen: dict[str, str] = {}  # names and classes of modules that bypassed the engine
        # In this thread some module was called; in another one, where nothing is seen, the model.
        self.is_here = self.is_elsewhere = False
        self.progress = Progress()
        self._thread = threading.get_ident()
        self._calls = 0
        self._calls_at_entry: list[int] = []
        self._last: tuple[int, Site, AttentionCall] | None = None
        self._located = (0, 0)

    def locate(self, call: AttentionCall) -> tuple[Site, int, bool]:
        """Note a call of ``attend``: its site, its first query, whether it repeats the last."""
        site = site_of(call)
        is_repeated = self._is_repeated(call, site)
        if is_in_backward():  # of a checkpoint, which computes a forward again
            return site, site.first if site.kind == "decoder" else 0, is_repeated
        if not is_repeated:
            queries = call.query.shape[-2]
            self._located = self.progress.locate(
                site[:3], queries, site.first, forward=self.forwards
            )
        layer, start = self._located
        return site._replace(layer=layer), start, is_repeated

    def _is_repeated(self, call: AttentionCall, site: Site) -> bool:
        """Whether the last call is made again with other values, as in differential attention."""
        self._calls += 1
        last, self._last = self._last, (self.forwards, site, call)
        if last is None or not last[0] == self.forwards > 0 or last[1][:3] != site[:3]:
            return False
        return _has_same_weights(call, last[2])

    def is_ours(self) -> bool:
        """Whether the current call is the model's, as far as its modules tell."""
        call, entered = current_call(), _entered.get()
        if call is not None:
            return id(call.module) in self._members
        return not entered or id(entered[-1].module) in self._members

    def follow(self, module: nn.Module, args: Arguments, options: Options) -> None:
        """Note a module that is being computed."""
        self.is_here = True
        _enter(module, args, options)

    def begin(self, module: nn.Module, args: Arguments) -> None:
        """Note the beginning of a forward of the whole model."""
        if torch.compiler.is_compiling():
            return
        if threading.get_ident() == self._thread:
            self.forwards += 1
        else:
            self.is_elsewhere = True

    def enter(self, module: nn.Module, args: Arguments) -> None:
        """Note the beginning of a module that attends."""
        if self._is_followed():
            self._calls_at_entry.append(self._calls)

    def leave(self, module: nn.Module, args: Arguments, output: object) -> None:
        """Note its end: it has called the engine, or it attends by itself."""
        if not self._is_followed() or not self._calls_at_entry:
            return
        if self._calls_at_entry.pop() == self._calls and output is not None:
            self.unseen[location_of(module).name] = type(module).__name__

    def _is_followed(self) -> bool:
        """Whether modules are followed now: not in a graph, nor in another thread."""
        if torch.compiler.is_compiling() or is_in_backward():
            return False
        return threading.get_ident() == self._thread


# Names of classes of attention modules.
_ATTENTION = re.compile(r"Attention\d?$")

_OF_OURS = ("states", "memory")  # the first two arguments of ``MultiHeadAttention``

_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("entered", default=())


@contextmanager
def reached(model: nn.Module, *, reads: bool = False) -> Iterator[ForwardTrace]:
    """Locate the calls that the engine serves; ``reads`` has others' weights read."""
    parts, trace = pretrained(model), ForwardTrace(model)
    eager = eager_parts(model) if reads else []
    excluded = {id(module) for part in eager for module in part.modules()}
    theirs = {id(module) for part in parts for module in part.modules()}
    enter, leave = of_this_thread(trace.follow), of_this_thread(_leave)
    begin, end = of_this_thread(trace.enter), of_this_thread(trace.leave)
    with ExitStack() as hooks:
        hooks.enter_context(located(model))
        for module in model.modules():
            if id(module) not in theirs:
                hooks.enter_context(module.register_forward_pre_hook(enter, with_kwargs=True))
                hooks.enter_context(module.register_forward_hook(leave, always_call=True))
        for part in {id(module): module for module in (model, *parts)}.values():
            hooks.enter_context(part.register_forward_pre_hook(trace.begin))
        for module in model.modules():
            if id(module) not in excluded and _is_attention(module):
                hooks.enter_context(module.register_forward_pre_hook(begin))
                hooks.enter_context(module.register_forward_hook(end, always_call=True))
        if parts:
            hooks.enter_context(switched(model, but=eager))
            hooks.enter_context(read_weights(eager))
        hooks.enter_context(functions_seen(model))
        yield trace


def module_of(model: "Attending") -> nn.Module:
    """Return the module of a model or a loaded run whose attention can be seen."""
    if not isinstance(model, nn.Module):
        inner = getattr(model, "model", None)
        if not isinstance(inner, nn.Module):
            raise SettingError(f"model must be a torch module or a loaded run; got {model!r}.")
        model = inner
    torchs = [type(module) for module in model.modules()]
    is_torchs = nn.MultiheadAttention in torchs and EngineAttention not in torchs
    if is_torchs and not is_hugging_face(model):
        raise SettingError(
            "model must attend through regard; got nn.MultiheadAttention as torch has it. "
            "Call regard.use(model) first."
        )
    return model


def check_seen(model: nn.Module, trace: ForwardTrace) -> None:
    """Raise SettingError if a model was called and nothing of its attention was seen."""
    if trace.is_elsewhere and not trace.is_here:
        raise SettingError(
            "model must be called in the thread of the block; got a call in another one."
        )
    check_compiled(model)
    if trace.forwards:
        raise SettingError(
            "model must attend through regard or transformers' AttentionInterface; got "
            f"{type(model).__name__}, none of whose attention could be seen. {_CURE}"
        )


def check_all_seen(trace: ForwardTrace) -> None:
    """Raise SettingError if some module computes attention that was not seen."""
    if trace.unseen:
        name, kind = next(iter(trace.unseen.items()))
        raise SettingError(
            "model must attend through regard or transformers' AttentionInterface; got "
            f"{kind} at {name}, which computes its own, and {len(trace.unseen) - 1} others. "
            f"Say what else is to be seen: layers=, or kinds=. {_CURE}"
        )


def is_in_backward() -> bool:
    """Whether gradients are being computed in this thread: torch has no public word for it."""
    return bool(torch._C._current_graph_task_id() != -1)


def site_of(attention: AttentionCall) -> Site:
    """Locate a call for an observer or an editor."""
    N, M = attention.query.shape[-2], attention.key.shape[-2]
    call = current_call()
    if call is not None:
        location, lazy = call.location, call.lazy
        dropped = 0 if lazy is None or attention.kind == "cross" else lazy.frame.key_start
        first = M - N if lazy is None else lazy.frame.query_start
        return Site(attention.kind, location.layer, location.name, first, dropped, lazy)
    entered = _entered.get()
    kind, layer, name = attention.kind, attention.layer, ""
    if entered:
        location = location_of(entered[-1].module)
        name, layer = location.name, location.layer if layer < 0 else layer
    if not kind:
        is_cross = bool(entered) and (entered[-1].is_cross or location.is_cross)
        looks_back = not is_cross and N <= M and _looks_back(attention)
        kind = "decoder" if looks_back else "cross" if is_cross or N != M else "encoder"
    return Site(kind, layer, name, M - N, 0, None)


def counted_of(attention: AttentionCall, site: Site) -> Tensor | None:
    """Mask of queries (B, N) that are no padding, as far as the mask says; None is all."""
    if site.kind == "cross":
        return None
    if site.lazy is not None:
        return site.lazy.counted(attention.query.device)
    N, M = attention.query.shape[-2], attention.key.shape[-2]
    if attention.mask is None or N != M or attention.query.dim() != 4:
        return None
    # Who is seen by nobody, not even by itself, is padding.
    bound = _bound(attention, attention.mask)
    hidden = bound.unseen
    return (
        None if hidden is None else ~hidden[:, :, :, 0].all(dim=1).expand(len(attention.query), N)
    )


def _bound(attention: AttentionCall, mask: Mask) -> BoundMask:
    *batch, H, N, _ = attention.query.shape
    return mask.bind(tuple(batch), H, N, attention.key.shape[-2], attention.query.device)


def _looks_back(attention: AttentionCall) -> bool:
    """Whether the first query does not see the last key."""
    N, M = attention.query.shape[-2], attention.key.shape[-2]
    if attention.mask is None or attention.query.dim() < 3 or N < 2:
        return N == 1 < M
    tile = _bound(attention, attention.mask).tile(range(1), range(M - 1, M))
    return tile is Cover.NONE or (isinstance(tile, Tensor) and not bool(tile.any()))


def _is_attention(module: nn.Module) -> bool:
    """Whether a module attends itself, by the name of its class, and not through one inside it."""
    named = [_ATTENTION.search(type(part).__name__) for part in module.modules()]
    return bool(named[0]) and not any(named[1:])


def _has_same_weights(first: AttentionCall, second: AttentionCall) -> bool:
    """Whether two calls have the same weights, by the memory of their inputs."""
    return (
        first.mask is second.mask
        and first.bias is second.bias
        and first.score == second.score
        and _shares_memory(first.query, second.query)
        and _shares_memory(first.key, second.key)
    )


def _shares_memory(first: Tensor, second: Tensor) -> bool:
    return first.data_ptr() == second.data_ptr() != 0 and first.shape == second.shape


def _enter(module: nn.Module, args: Arguments, options: Options) -> None:
    if torch.compiler.is_compiling():
        return
    memory = None
    if isinstance(module, nn.MultiheadAttention | MultiHeadAttention):
        names = ("query", "key") if isinstance(module, nn.MultiheadAttention) else _OF_OURS
        asks, looked_at = (
            args[n] if n < len(args) else options.get(name) for n, name in enumerate(names)
        )
        memory = None if looked_at is asks else looked_at
    _entered.set((*_entered.get(), _Entered(module, memory is not None)))


def _leave(module: nn.Module, args: Arguments, output: object) -> None:
    if not torch.compiler.is_compiling():
        _entered.set(_entered.get()[:-1])
