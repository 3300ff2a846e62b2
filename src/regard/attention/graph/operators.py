"""``attend`` as custom operators, which compilers and exporters take as they are.

A compiler sees tensors whose numbers, and often sizes, it does not know; the engine plans by both.
So a graph holds one operator, ``regard::attend``, which plans when it runs, and another for its
gradient. It takes tensors, numbers and text, but no objects: a built-in score,
mask, bias or weighting is its name followed by the arguments it is made with, which it keeps as
attributes of the same names; so a new one needs nothing here.

Compilers cache code for an operator on disk, by its name: an operator with other arguments or
outputs needs another name.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from sys import modules
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.call.plan import Plan, plan_of
from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, Request, make_request, without_autocast
from regard.attention.masks import Mask
from regard.attention.masks.base import as_mask
from regard.attention.observing import AttentionCall, current_observer
from regard.attention.scores import Score
from regard.attention.weighting import Weighting
from regard.errors import SettingError

_FAMILIES = (Score, Mask, PositionBias, Weighting)
_HERE = "regard.attention."
_BACKENDS = "regard.attention.backends."
_CONSTANTS = {"None": None, "True": True, "False": False}


def _kinds(family: type) -> Iterator[type]:
    """The classes of a family that are written here, whoever else has added to it."""
    kind: type
    for kind in family.__subclasses__():
        yield from _kinds(kind)
        # Those of backends carry something inside of a call, and are in no graph.
        if kind.__module__.startswith(_HERE) and not kind.__module__.startswith(_BACKENDS):
            # As the module holds it: a class with slots has a first version that nobody uses.
            yield vars(modules[kind.__module__])[kind.__name__]


# Every built-in class by its name, and the names of its arguments.
BUILT_IN: dict[str, type] = {kind.__name__: kind for family in _FAMILIES for kind in _kinds(family)}
_ARGUMENTS = {kind: tuple(signature(kind).parameters) for kind in BUILT_IN.values()}


class Encoded(NamedTuple):
    """An object taken apart: class names before their arguments, which are tensors or numbers."""

    form: str  # names of classes and kinds of arguments
    tensors: Sequence[Tensor]
    integers: Sequence[int]
    floats: Sequence[float]


def is_built_in(value: object) -> bool:
    """Whether ``encode`` can take an object, and all that it is made of, apart."""
    if value is None or isinstance(value, Tensor | int | float | str | torch.SymInt):
        return True
    if type(value) not in _ARGUMENTS:
        return False
    for name in _ARGUMENTS[type(value)]:
        if not hasattr(value, name) or not is_built_in(getattr(value, name)):
            return False
    return True


def encode(*values: object) -> Encoded:
    """Take built-in objects apart, one after the other; numbers stay, so graphs may vary them."""
    parts = _Parts([], [], [], [])
    for value in values:
        _flatten(value, parts)
    return Encoded(" ".join(parts.words), *parts[1:])


def decode(encoded: Encoded) -> list[Any]:
    """Return the objects that ``encode`` was given."""
    words = iter(encoded.form.split())
    leaves: dict[str, Iterator[object]] = {
        "tensor": iter(encoded.tensors),
        "int": iter(encoded.integers),
        "float": iter(encoded.floats),
    }
    return [_unflatten(word, words, leaves) for word in words]


class _Parts(NamedTuple):
    words: list[str]
    tensors: list[Tensor]
    integers: list[int]
    floats: list[float]


def _flatten(value: object, parts: _Parts) -> None:
    if isinstance(value, Tensor):
        parts.words.append("tensor")
        parts.tensors.append(value)
    elif value is None or isinstance(value, bool):
        parts.words.append(str(value))
    elif isinstance(value, int | torch.SymInt):
        parts.words.append("int")
        parts.integers.append(value)  # type: ignore[arg-type]
    elif isinstance(value, float):
        parts.words.append("float")
        parts.floats.append(value)
    elif isinstance(value, str):
        # Words are told apart by spaces.
        parts.words.append("'" + value.replace("%", "%25").replace(" ", "%20"))
    else:
        kind = type(value)
        parts.words.append(kind.__name__)
        for name in _ARGUMENTS[kind]:
            _flatten(getattr(value, name), parts)


def _unflatten(word: str, words: Iterator[str], leaves: dict[str, Iterator[object]]) -> object:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in leaves:
        return next(leaves[word])
    if word.startswith("'"):
        return word[1:].replace("%20", " ").replace("%25", "%")
    kind = BUILT_IN[word]
    return kind(**{name: _unflatten(next(words), words, leaves) for name in _ARGUMENTS[kind]})


@torch.library.custom_op("regard::attend", mutates_args=())
def attend_operator(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    tensors: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """``attend``, planned when it runs: mixed values, log-sum-exp, and sums or zeros for both."""
    # Encoded are the score, the mask, the bias, the weighting (its sink is left to the graph), the
    # dropout, its seed, the pinned backend, whether the log-sum-exp is wanted, and the location for
    # observers. The plan depends on which gradients of query, key, value and tensors may be
    # asked for.
    if (observer := current_observer()) is not None:
        score, mask, bias, weighting, *_, kind, layer = decode(
            Encoded(form, tensors, integers, floats)
        )
        mask = None if mask is None else as_mask(mask)
        observer(AttentionCall(kind, layer, query, key, score, mask, bias, weighting))
    with _recording(query):
        leaves = _leaves_of((query, key, value, *tensors), learned)
        plan, request = _planned(leaves, form, integers, floats, learned)
        with torch.no_grad():
            if request.wants_grad and _is_tiled(plan, request):
                mixed, top, total = tiled.forward(tiled.job_of(request), BlockInputs.of(request))
                out, lse = mixed.to(query.dtype), (top + total.log()).squeeze(-1)
                sums = torch.cat([top, total], dim=-1)
            else:
                out, backend_lse = plan.serve(request)
                sums = out.new_zeros(*out.shape[:-1], 2, dtype=_wide(query))
                lse = torch.zeros_like(sums[..., 0]) if backend_lse is None else backend_lse
    # In the layout that graphs count on.
    out, lse, sums = (
        t.reshape(*request.leading, *t.shape[2:]).contiguous() for t in (out, lse, sums)
    )
    return out, lse, sums


@attend_operator.register_fake
def _fake(query: Tensor, key: Tensor, value: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor]:
    if torch.onnx.is_in_onnx_export():
        raise SettingError(
            "attend must be without dropout and log-sum-exp to be part of an ONNX graph; got "
            "one of them. Use torch.export.export, whose programs run wherever regard is."
        )
    rows, wide = (*_leading(query, key, value), query.shape[-2]), _wide(query)
    out = query.new_empty(*rows, value.shape[-1])
    return out, query.new_empty(rows, dtype=wide), query.new_empty(*rows, 2, dtype=wide)


@torch.library.custom_op("regard::attend_backward", mutates_args=())
def attend_backward(
    d_out: Tensor,
    d_lse: Tensor,
    out: Tensor,
    sums: Tensor,
    inputs: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
    needs_grad: Sequence[bool],
) -> list[Tensor]:
    """The gradients of ``regard::attend`` that are wanted; ``inputs`` are all its tensors."""
    with _recording(inputs[0]):
        leaves = _leaves_of(inputs, needs_grad)
        plan, request = _planned(leaves, form, integers, floats, learned)
        d_out, d_lse = _on_four_axes(request, d_out.detach(), d_lse.detach())
        # Planned for other gradients, the sums may be missing. Rounded to half precision, mixed
        # values would say too little.
        is_same = list(needs_grad) == list(learned) and out.dtype == sums.dtype
        if is_same and _is_tiled(plan, request):
            out, sums = _on_four_axes(request, out.detach(), sums.detach())
            answer = (out, sums[..., :1], sums[..., 1:])
            with torch.no_grad():
                pairs = tiled.input_gradients(request, d_out, d_lse, answer)
        else:
            mixed, lse = plan.serve(request)
            pairs = [(mixed, d_out)] if lse is None else [(mixed, d_out), (lse, d_lse)]
        # Without a graph of their own, in the layout that compiled graphs count on.
        return [grad.detach().contiguous() for grad in tiled.chained(pairs, leaves)]


@attend_backward.register_fake
def _fake_backward(
    d_out: Tensor,
    d_lse: Tensor,
    out: Tensor,
    sums: Tensor,
    inputs: Sequence[Tensor],
    *settings: Any,
) -> list[Tensor]:
    return [t.new_empty(t.shape) for t, want in zip(inputs, settings[-1], strict=True) if want]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, tensors, *ctx.settings = inputs
    out, _, sums = output
    ctx.save_for_backward(out, sums, query, key, value, *tensors)


def _backward(ctx: Any, d_out: Tensor, d_lse: Tensor, _: Tensor) -> Any:
    out, sums, *inputs = ctx.saved_tensors
    needs_grad = [*ctx.needs_input_grad[:3], *ctx.needs_input_grad[3]]
    grads = iter(attend_backward(d_out, d_lse, out, sums, inputs, *ctx.settings, needs_grad))
    grads_of_inputs = [next(grads) if want else None for want in needs_grad]
    # To torch, an empty list is one of tensors.
    grads_of_settings: list[object] = [
        [] if isinstance(setting, Sequence) and not setting else None for setting in ctx.settings
    ]
    return (*grads_of_inputs[:3], grads_of_inputs[3:], *grads_of_settings)


attend_operator.register_autograd(_backward, setup_context=_save)


@contextmanager
def _recording(query: Tensor) -> Iterator[None]:
    """Let gradients be taken, though operators run below autograd and its view tracking."""
    keys = (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView)
    with ExitStack() as stack:
        for key in keys:
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        stack.enter_context(without_autocast(query.device.type))
        stack.enter_context(torch.enable_grad())
        yield


def _leaves_of(tensors: Sequence[Tensor], needs_grad: Sequence[bool]) -> list[Tensor]:
    pairs = zip(tensors, needs_grad, strict=True)
    return [tensor.detach().requires_grad_(want) for tensor, want in pairs]


def _planned(
    inputs: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
) -> tuple[Plan, Request]:
    """The plan and the request of an encoded call."""
    query, key, value, *tensors = inputs
    score, mask, bias, weighting, dropout, seed, backend, wants_lse, *_ = decode(
        Encoded(form, tensors, integers, floats)
    )
    options = CallOptions(score, mask, bias, weighting, dropout, None, backend, wants_lse)
    seed = None if seed is None else int(seed)
    call = Call(query, key, value, options, wants_grad=any(learned), seed=seed)
    plan, request = plan_of(call)
    return plan, make_request(call, is_checked=True) if request is None else request


def _is_tiled(plan: Plan, request: Request) -> bool:
    return request.key.shape[2] > 0 and plan.offer is not None and plan.offer.run is tiled.run


def _on_four_axes(request: Request, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    rows, rank = request.query.shape[:3], len(request.leading) + 1
    return first.reshape(*rows, *first.shape[rank:]), second.reshape(*rows, *second.shape[rank:])


def _leading(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """The shape of the answer before (N, E)."""
    q, k, v = query.shape, key.shape, value.shape
    groups = len(q) >= 4 and len(k) >= 4
    axes = slice(None, -3 if groups else -2)
    batch: tuple[int, ...] = torch.broadcast_shapes(q[axes], k[axes], v[axes])  # type: ignore[no-untyped-call]
    return (*batch, q[-3]) if groups else batch


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
