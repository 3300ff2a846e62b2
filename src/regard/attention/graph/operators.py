"""``attend`` as custom operators, which compilers and exporters take as they are.

A compiler sees tensors whose numbers, and often sizes, it does not know; the engine plans by both.
So a graph holds one operator, ``regard::attend``, which plans when it runs, and another for its
gradient, and that one's. What ``attend`` takes besides tensors is encoded: ``encoding.py``.

Compilers keep on disk what they made of an operator, by its name: where it comes to take or return
something else, it needs another.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.attention.backends.base import Tiled
from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Request, make_request
from regard.attention.graph.encoding import Encoded, decode
from regard.attention.masks.base import as_mask
from regard.attention.observing import AttentionCall, current_observer
from regard.attention.plan import pick_backend, serve
from regard.errors import SettingError


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
    """``attend``, planned when it runs."""
    # Encoded are the score, the mask, the bias, the weighting (its sink is left to the graph), the
    # dropout, its seed, the pinned backend, whether the log-sum-exp is wanted, and the place for
    # who observes. The plan depends on which gradients of query, key, value and tensors may be
    # asked for.
    if (observer := current_observer()) is not None:
        score, mask, bias, weighting, *_, kind, layer = decode(
            Encoded(form, tensors, integers, floats)
        )
        mask = None if mask is None else as_mask(mask)
        observer(AttentionCall(kind, layer, query, key, score, mask, bias, weighting))
    with recording(query.device.type):
        leaves = leaves_of((query, key, value, *tensors), learned)
        request, backend = request_of(leaves, (form, integers, floats, learned))
        with torch.no_grad():
            if request.wants_grad and is_tiled(request, backend):
                out, lse, sums = answer_and_sums(request)
            else:
                out, found = serve(request, backend)
                sums = out.new_zeros(*out.shape[:-1], 2, dtype=_wide(query))
                lse = torch.zeros_like(sums[..., 0]) if found is None else found
    # In the layout that graphs count on.
    out, lse, sums = (
        t.reshape(*request.leading, *t.shape[2:]).contiguous() for t in (out, lse, sums)
    )
    return out, lse, sums


@attend_operator.register_fake
def _fake(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    tensors: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    if torch.onnx.is_in_onnx_export():
        raise SettingError(
            "attend must be a dot product, without a mask or by causal() over as many keys as "
            "queries, to be part of an ONNX graph; got other options. Use torch.export.export, "
            "whose programs run wherever regard is."
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
    given: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
    wanted: Sequence[bool],
) -> list[Tensor]:
    """The gradients of ``regard::attend`` that are wanted."""
    rest = (form, integers, floats, learned)
    return _settled(gradients(given, wanted, rest, (d_out, d_lse), (out, sums)))


@attend_backward.register_fake
def _fake_backward(
    d_out: Tensor,
    d_lse: Tensor,
    out: Tensor,
    sums: Tensor,
    given: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
    wanted: Sequence[bool],
) -> list[Tensor]:
    return [t.new_empty(t.shape) for t, want in zip(given, wanted, strict=True) if want]


@torch.library.custom_op("regard::attend_backward_again", mutates_args=())
def attend_backward_again(
    d_grads: Sequence[Tensor],
    d_out: Tensor,
    d_lse: Tensor,
    given: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
    wanted: Sequence[bool],
) -> list[Tensor]:
    """The gradients of ``regard::attend_backward``: of ``d_out``, ``d_lse`` and ``given``."""
    rest = (form, integers, floats, learned)
    return _settled(gradients_again(d_grads, given, wanted, rest, (d_out, d_lse)))


@attend_backward_again.register_fake
def _fake_backward_again(
    d_grads: Sequence[Tensor],
    d_out: Tensor,
    d_lse: Tensor,
    given: Sequence[Tensor],
    form: str,
    integers: Sequence[int],
    floats: Sequence[float],
    learned: Sequence[bool],
    wanted: Sequence[bool],
) -> list[Tensor]:
    asked = [t for t, want in zip(given, wanted, strict=True) if want]
    return [t.new_empty(t.shape) for t in (d_out, d_lse, *asked)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, tensors, *ctx.rest = inputs
    out, _, sums = output
    ctx.save_for_backward(out, sums, query, key, value, *tensors)


def _backward(ctx: Any, d_out: Tensor, d_lse: Tensor, _: Tensor) -> Any:
    out, sums, *given = ctx.saved_tensors
    wanted = [*ctx.needs_input_grad[:3], *ctx.needs_input_grad[3]]
    grads = attend_backward(d_out, d_lse, out, sums, given, *ctx.rest, wanted)
    each = _each_or_none(grads, wanted)
    return (*each[:3], each[3:], *_of_rest(ctx.rest))


def _save_again(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    d_out, d_lse, _, _, given, *ctx.rest = inputs
    ctx.save_for_backward(d_out, d_lse, *given)


def _backward_again(ctx: Any, d_grads: list[Tensor]) -> Any:
    d_out, d_lse, *given = ctx.saved_tensors
    d_d_out, d_d_lse, *grads = attend_backward_again(d_grads, d_out, d_lse, given, *ctx.rest)
    each = _each_or_none(grads, ctx.rest[-1])
    return (d_d_out, d_d_lse, None, None, each, *_of_rest(ctx.rest))


attend_operator.register_autograd(_backward, setup_context=_save)
attend_backward.register_autograd(_backward_again, setup_context=_save_again)


def _leading(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """The shape of the answer before (N, E)."""
    q, k, v = query.shape, key.shape, value.shape
    groups = len(q) >= 4 and len(k) >= 4
    axes = slice(None, -3 if groups else -2)
    batch: tuple[int, ...] = torch.broadcast_shapes(q[axes], k[axes], v[axes])  # type: ignore[no-untyped-call]
    return (*batch, q[-3]) if groups else batch


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _settled(grads: list[Tensor]) -> list[Tensor]:
    """Without a graph of their own, in the layout that compiled graphs count on."""
    return [grad.detach().contiguous() for grad in grads]


def _each_or_none(grads: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor | None]:
    left = iter(grads)
    return [next(left) if want else None for want in wanted]


def _of_rest(rest: Sequence[object]) -> list[object]:
    """The gradients of what is no tensor; to torch, an empty list is one of tensors."""
    return [[] if isinstance(each, Sequence) and not each else None for each in rest]


# The form, the integers and the floats that are encoded, and of which tensors a gradient may be
# asked for.
Rest = tuple[str, Sequence[int], Sequence[float], Sequence[bool]]
Pairs = list[tuple[Tensor, Tensor]]


@contextmanager
def recording(kind: str) -> Iterator[None]:
    """Let gradients be taken, though operators run below autograd and its view tracking."""
    keys = (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView)
    with ExitStack() as stack:
        for key in keys:
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        if torch.is_autocast_enabled(kind):
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(torch.enable_grad())
        yield


def request_of(given: Sequence[Tensor], rest: Rest) -> tuple[Request, str | None]:
    """The request of an encoded call, and the pinned backend."""
    query, key, value, *tensors = given
    form, integers, floats, learned = rest
    score, mask, bias, weighting, dropout, seed, backend, wants_lse, *_ = decode(
        Encoded(form, tensors, integers, floats)
    )
    options = CallOptions(score, mask, bias, weighting, dropout, return_lse=wants_lse)
    seed = None if seed is None else int(seed)
    request = make_request(query, key, value, options, wants_grad=any(learned), seed=seed)
    return request, backend


def is_tiled(request: Request, backend: str | None) -> bool:
    """Whether the tiled engine serves a request."""
    return request.key.shape[2] > 0 and isinstance(pick_backend(request, backend), Tiled)


def answer_and_sums(request: Request) -> tuple[Tensor, Tensor, Tensor]:
    """Mixed values, log-sum-exp, and each query's maximum and sum of powers (B, H, N, 2)."""
    out, top, total = tiled.answer_of(tiled.job_of(request), BlockInputs.of(request))
    lse = (top + total.log()).squeeze(-1)
    return out.to(request.query.dtype), lse, torch.cat([top, total], dim=-1)


def leaves_of(tensors: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor]:
    """Detached copies of the tensors as leaves of a new graph."""
    pairs = zip(_detached(tensors), wanted, strict=True)
    return [tensor.requires_grad_(want) for tensor, want in pairs]


def gradients(
    given: Sequence[Tensor],
    wanted: Sequence[bool],
    rest: Rest,
    d_answer: tuple[Tensor, Tensor],
    answer: tuple[Tensor, Tensor],
) -> list[Tensor]:
    """The wanted gradients of a call, from those of its answer (values and log-sum-exp)."""
    with recording(given[0].device.type):
        leaves = leaves_of(given, wanted)
        request, backend = request_of(leaves, rest)
        d_out, d_lse = _on_four_axes(request, *_detached(d_answer))
        # Planned for other gradients, the sums may be missing. Rounded to half precision, mixed
        # values would say too little.
        is_kept = list(wanted) == list(rest[-1]) and answer[0].dtype == answer[1].dtype
        if is_kept and is_tiled(request, backend):
            out, sums = _on_four_axes(request, *_detached(answer))
            with torch.no_grad():
                pairs = _of_tiled(request, d_out, d_lse, (out, sums[..., :1], sums[..., 1:]))
        else:
            out, lse = serve(request, backend)
            pairs = [(out, d_out)] if lse is None else [(out, d_out), (lse, d_lse)]
        return _chained(pairs, leaves)


def gradients_again(
    d_grads: Sequence[Tensor],
    given: Sequence[Tensor],
    wanted: Sequence[bool],
    rest: Rest,
    d_answer: tuple[Tensor, Tensor],
) -> list[Tensor]:
    """The gradients of ``gradients``: of both of ``d_answer``, and of ``given`` where wanted."""
    with recording(given[0].device.type):
        d_leaves, leaves = leaves_of(d_answer, (True, True)), leaves_of(given, wanted)
        request, _ = request_of(leaves, rest)
        d_out, d_lse = _on_four_axes(request, *d_leaves)
        # Of all engines, one can be differentiated twice.
        pairs = _of_tiled(request, d_out, d_lse, None) if request.key.shape[2] else []
        grads = _chained(pairs, leaves, create_graph=True)
        return _chained(list(zip(grads, d_grads, strict=True)), [*d_leaves, *leaves])


def _of_tiled(
    request: Request,
    d_out: Tensor,
    d_lse: Tensor,
    answer: tuple[Tensor, Tensor, Tensor] | None,
) -> Pairs:
    """Inputs of the tiled engine with their gradients, without its forward pass."""
    with torch.enable_grad():
        inputs = BlockInputs.of(request)
    each = inputs.flat()
    wanted = tuple(t is not None and t.requires_grad for t in each)
    d_out = d_out.to(inputs.query.dtype)
    grads = tiled.backward(tiled.job_of(request), inputs, wanted, d_out, d_lse, answer)
    pairs = zip(each, grads, strict=True)
    return [(t, grad) for t, grad in pairs if t is not None and grad is not None]


def _chained(pairs: Pairs, leaves: Sequence[Tensor], *, create_graph: bool = False) -> list[Tensor]:
    """The gradients of leaves, from ends with their gradients."""
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    # An end may depend on nothing: there may be no keys.
    pairs = [(end, d_end) for end, d_end in pairs if end.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in wanted]
    return list(
        torch.autograd.grad(
            [end for end, _ in pairs],
            wanted,
            [d_end for _, d_end in pairs],
            create_graph=create_graph,
            materialize_grads=True,
        )
    )


def _on_four_axes(request: Request, *answers: Tensor) -> list[Tensor]:
    rows, rank = request.query.shape[:3], len(request.leading) + 1
    return [answer.reshape(*rows, *answer.shape[rank:]) for answer in answers]


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach() for tensor in tensors]
