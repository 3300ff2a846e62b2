"""``attend`` for whoever traces it: ``torch.compile`` and ``torch.export``."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, Request, make_request
from regard.attention.graph.formula import attend_by_formula, is_exporting, is_written_out
from regard.attention.graph.operators import attend_operator, encode, is_built_in
from regard.attention.masks.base import Mask
from regard.attention.masks.rules import causal
from regard.attention.observing import current_location, is_edited, is_watched
from regard.attention.scores import DotForm
from regard.attention.weighting import Softmax, apply_sink
from regard.errors import SettingError

Answer = Tensor | tuple[Tensor, Tensor]
_ENCODED = ("score", "mask", "bias", "weighting")
_CAUSAL = (encode(causal()).form, encode(causal(first=0)).form)


def attend_in_graph(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: CallOptions,
    *,
    outside: Callable[..., Answer],
) -> Answer:
    """``attend`` in a traced graph: torch's own kernel, or the operator."""
    # Where torch's own kernel serves whatever the sizes, the graph gets that, which every compiler
    # and exporter knows; else the operator, which plans when it runs. A call that cannot be part of
    # a graph is served by ``outside``, between two graphs.
    if (refusal := _refusal(options)) is not None:
        if is_exporting():
            raise SettingError(refusal)
        torch._dynamo.graph_break(msg=refusal)
        leave: Callable[..., Answer] = torch.compiler.disable(outside)  # type: ignore[no-untyped-call]
        return leave(query, key, value, **dict(zip(options._fields, options, strict=True)))
    score, mask, bias, weighting, dropout, generator, backend, return_lse = options
    if is_written_out() and not (return_lse or dropout):
        return attend_by_formula(query, key, value, options)
    # Wrong shapes raise now: the shapes of the operator's answer follow from them.
    checked = options._replace(mask=None, bias=None, dropout=0.0)
    request = make_request(Call(query, key, value, checked))
    wants_lse = return_lse or request.sink is not None
    seed = torch.randint(2**31 - 1, (), generator=generator) if dropout else None
    form, tensors, integers, floats = encode(
        score, mask, bias, weighting, dropout, seed, backend, wants_lse, *current_location()
    )
    records = torch.is_grad_enabled()
    learned = [records and t.requires_grad for t in (query, key, value, *tensors)]
    is_plain = bias is None and not dropout and backend is None and not wants_lse
    if is_plain and not is_watched():
        out = _as_dot_product(request, mask, learned)
        if out is not None:
            return out
    if torch.onnx.is_in_onnx_export() and not (return_lse or dropout):
        return attend_by_formula(query, key, value, options)  # which knows no operator of ours
    out, lse, _ = attend_operator(query, key, value, tensors, form, integers, floats, learned)
    if (sink := request.sink) is not None:
        out, lse = apply_sink(sink if lse.dim() > 1 else sink[0], out, lse)
    return (out, lse) if return_lse else out


def _refusal(options: CallOptions) -> str | None:
    """Why a call cannot be part of a graph, or None if it can."""
    if is_edited():
        return "attend must be left as it is in a graph; got an editor."
    for name in _ENCODED:
        if not is_built_in(value := getattr(options, name)):
            return f"{name} must be built in to be part of a graph; got {type(value).__name__}."
    return None


def _as_dot_product(
    request: Request, mask: Mask | Tensor | None, learned: list[bool]
) -> Tensor | None:
    """The answer of torch's kernel, or None if it is not the one to ask."""
    if not request.score.is_dot_product or type(request.weighting) is not Softmax:
        return None
    form = request.dot()
    # With other widths torch would hold the whole N×M matrix.
    if form is None or not _is_static(form.key.shape[-1] == request.value.shape[-1]):
        return None
    is_cpu = request.query.is_cpu
    if is_exporting():
        # On a CPU the engine does not let NaN through a mask, as torch does; an ONNX graph cannot
        # hold the engine.
        takes_flag = not is_cpu or torch.onnx.is_in_onnx_export()
    # On a CPU the operator plans as outside of graphs, and lets no NaN through a mask.
    # Float64 is differentiated again, which the kernel cannot; exported graphs are for inference.
    elif is_cpu or (any(learned) and request.query.dtype == torch.float64):
        return None
    else:
        takes_flag = True
    is_flag = mask is not None and _is_flag(mask, request)
    if mask is not None and not (is_flag and takes_flag):
        return None
    out = _kernel(form, request.value, is_flag=is_flag)
    return out.reshape(*request.leading, *out.shape[2:])


def _kernel(form: DotForm, value: Tensor, *, is_flag: bool) -> Tensor:
    kind = value.device.type
    is_mixed = torch.is_autocast_enabled(kind)
    with torch.autocast(kind, enabled=False) if is_mixed else nullcontext():
        return F.scaled_dot_product_attention(
            form.query,
            form.key,
            value,
            is_causal=is_flag,
            scale=form.scale,
            enable_gqa=not _is_static(form.query.shape[1] == form.key.shape[1]),
        )


def _is_static(claim: bool | torch.SymBool) -> bool:
    """Whether something holds for all sizes of the graph."""
    # Not at the top: it takes a second, and whoever traces has paid it.
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(claim)


def _is_flag(mask: Mask | Tensor, request: Request) -> bool:
    """Whether the mask is causal, with as many queries as keys for all sizes of the graph."""
    encoded = encode(mask)
    is_causal = encoded.form in _CAUSAL and not any(encoded.integers)
    return is_causal and _is_static(request.query.shape[2] == request.key.shape[2])
