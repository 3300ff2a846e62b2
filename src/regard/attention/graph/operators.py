"""``attend`` as custom operators, which compilers and exporters take as they are.

A compiler sees tensors whose numbers, and often sizes, it does not know; the engine plans by both.
So a graph holds one operator, ``regard::attend``, which plans when it runs, and another for its
gradient, and that one's. What ``attend`` takes besides tensors is encoded: ``encoding.py``.

Compilers keep on disk what they made of an operator, by its name: where it comes to take or return
something else, it needs another.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.call import AttentionCall
from regard.attention.graph.encoding import Encoded, decode
from regard.attention.graph.gradients import (
    answer_and_sums,
    gradients,
    gradients_again,
    is_tiled,
    leaves_of,
    recording,
    request_of,
)
from regard.attention.masks.base import as_mask
from regard.attention.observing import current_observer
from regard.attention.plan import serve
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
    """``attend``, planned when it runs.

    Args:
        query: What ``attend`` is given, as are the next two.
        key: See there.
        value: See there.
        tensors: With the next three, what is encoded: the score, the mask, the bias, the
            weighting, whose sink is left to the graph, the dropout, its seed, the pinned backend,
            whether the log-sum-exp is wanted, and the place for who observes.
        form: See ``tensors``.
        integers: See ``tensors``.
        floats: See ``tensors``.
        learned: For query, key, value and each of ``tensors``, whether its gradient may be asked
            for; the plan depends on it.

    Returns:
        The mixed values; the log-sum-exp, and what makes a gradient cheaper: zeros where nobody
        wants them.
    """
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
    """The gradients of ``regard::attend`` that are wanted.

    Given are the gradients of the mixed values and of the log-sum-exp; the first and the last of
    what ``regard::attend`` returned; query, key, value and the encoded tensors; the rest as there;
    and which of the tensors have a gradient that is wanted.
    """
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
    """The gradients of ``regard::attend_backward``.

    Given are the gradients of what it returned, and what it was given; returned are those of
    ``d_out`` and ``d_lse``, and those of ``given`` that are wanted.
    """
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
    """The gradients where they are wanted, None elsewhere."""
    left = iter(grads)
    return [next(left) if want else None for want in wanted]


def _of_rest(rest: Sequence[object]) -> list[object]:
    """The gradients of what is no tensor; to torch, an empty list is one of tensors."""
    return [[] if isinstance(each, Sequence) and not each else None for each in rest]
