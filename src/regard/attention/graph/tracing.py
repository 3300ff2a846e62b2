"""``attend`` for whoever traces it: ``torch.compile`` and ``torch.export``."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.biases import PositionBias
from regard.attention.engine.request import Request, make_request
from regard.attention.graph.encoding import encode, is_built_in
from regard.attention.graph.formula import attend_by_formula, is_written_out
from regard.attention.graph.operators import attend_operator
from regard.attention.masks.base import Mask
from regard.attention.masks.window import causal
from regard.attention.observing import current_place, is_watched
from regard.attention.scores import Score
from regard.attention.weighting import Softmax, Weighting, apply_sink
from regard.errors import SettingError

R = TypeVar("R")
_CAUSAL = (encode(causal()).form, encode(causal(first=0)).form)


def refuse_graph(**given: object) -> str | None:
    """Why a call with these options cannot be part of a graph, or None if it can."""
    for name, thing in given.items():
        if not is_built_in(thing):
            return f"{name} must be built in to be part of a graph; got {type(thing).__name__}."
    return None


def refuse_tracer() -> None:
    """Raise SettingError where ``torch.jit.trace`` asks, which keeps one example's choices."""
    if torch._C._is_tracing():
        cure = (
            "torch.onnx.export(..., dynamo=True)"
            if torch.onnx.is_in_onnx_export()
            else "torch.export.export(model, inputs), or torch.compile(model)"
        )
        raise SettingError(
            "attend must be exported or compiled where sizes may change; got torch.jit.trace, "
            f"whose graph is right for one example. Use {cure}."
        )


def leave_graph(refusal: str, function: Callable[..., R]) -> Callable[..., R]:
    """The function as something that ``torch.compile`` leaves alone, between two graphs.

    Raises:
        SettingError: Where there is to be one graph only, as for ``torch.export``.
    """
    if torch.compiler.is_exporting():
        raise SettingError(refusal)
    torch._dynamo.graph_break(msg=refusal)
    return torch.compiler.disable(function)  # type: ignore[no-any-return, no-untyped-call]


def attend_in_graph(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
    dropout: float,
    generator: torch.Generator | None,
    backend: str | None,
    return_lse: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """``attend`` where ``refuse_graph`` gives None.

    Where torch's own kernel serves whatever the sizes, the graph gets that, which every compiler
    and exporter knows; else the operator, which plans when it runs. Inside ``written_out`` it gets
    the formula.
    """
    if return_lse and not isinstance(weighting, Softmax):
        came = type(weighting).__name__
        raise SettingError(f"return_lse must go with Softmax(); got {came}().")
    if is_written_out() and not (return_lse or dropout):
        return attend_by_formula(
            query, key, value, score=score, mask=mask, bias=bias, weighting=weighting
        )
    # What is wrong with shapes is said now: from them follow those of the operator's answer.
    request = make_request(
        query, key, value, score=score, mask=None, bias=None, weighting=weighting
    )
    wants_lse = return_lse or request.sink is not None
    seed = torch.randint(2**31 - 1, (), generator=generator) if dropout else None
    form, tensors, integers, floats = encode(
        score, mask, bias, weighting, dropout, seed, backend, wants_lse, *current_place()
    )
    records = torch.is_grad_enabled()
    learned = [records and t.requires_grad for t in (query, key, value, *tensors)]
    # The fastest gradient on a CPU depends on the sizes, and torch's kernel has none in float64
    # that can be differentiated again. Exported graphs are for inference.
    has_fused = query.device.type != "cpu" and query.dtype != torch.float64
    is_settled = has_fused or not any(learned) or torch.compiler.is_exporting()
    is_plain = bias is None and not dropout and backend is None and not wants_lse
    if is_settled and is_plain and not is_watched():
        out = _as_dot_product(request, mask)
        if out is not None:
            return out
    out, lse, _ = attend_operator(query, key, value, tensors, form, integers, floats, learned)
    if (sink := request.sink) is not None:
        out, lse = apply_sink(sink if lse.dim() > 1 else sink[0], out, lse)
    return (out, lse) if return_lse else out


def _as_dot_product(request: Request, mask: Mask | Tensor | None) -> Tensor | None:
    """The answer of torch's kernel, or None if it is not the one to ask."""
    if not request.score.is_dot_product or type(request.weighting) is not Softmax:
        return None
    kind = request.query.device.type
    # On a CPU the engine keeps NaN from queries that do not see it, which a mask does not; an ONNX
    # graph cannot hold the engine.
    is_ours = kind == "cpu" and not torch.onnx.is_in_onnx_export()
    if mask is not None and (is_ours or not _is_flag(mask, request)):
        return None
    form = request.dot()
    # With other widths torch would hold the whole N×M matrix.
    if form is None or form.key.shape[-1] != request.value.shape[-1]:
        return None
    is_mixed = torch.is_autocast_enabled(kind)
    with torch.autocast(kind, enabled=False) if is_mixed else nullcontext():
        out = F.scaled_dot_product_attention(
            form.query,
            form.key,
            request.value,
            is_causal=mask is not None,
            scale=form.scale,
            enable_gqa=form.query.shape[1] != form.key.shape[1],
        )
    return out.reshape(*request.leading, *out.shape[2:])


def _is_flag(mask: Mask | Tensor, request: Request) -> bool:
    """Whether the mask is causal, with as many queries as keys for all sizes of the graph."""
    # Not at the top: it takes a second, and whoever traces has paid it.
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    encoded = encode(mask)
    is_causal = encoded.form in _CAUSAL and not any(encoded.integers)
    return is_causal and statically_known_true(request.query.shape[2] == request.key.shape[2])
