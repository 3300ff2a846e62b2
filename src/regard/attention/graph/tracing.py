"""``attend`` for whoever traces it: ``torch.compile`` and ``torch.export``."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.backends.base import FEWEST_PAIRS_OF_A_PLANNED_STEP
from regard.attention.backends.sdpa import LARGEST_MASK
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Request, make_request
from regard.attention.graph.formula import attend_by_formula, is_written_out
from regard.attention.graph.operators import Encoded, attend_operator, encode, is_built_in
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.grid import Grid
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
    outside: Callable[[Tensor, Tensor, Tensor, CallOptions], Answer],
) -> Answer:
    """``attend`` in a traced graph: torch's own kernel, the operator, or for a CPU both."""
    # Where torch's own kernel serves whatever the sizes, the graph gets that, which every compiler
    # and exporter knows; else the operator, which plans when it runs. A call that cannot be part of
    # a graph is served by ``outside``, between two graphs.
    if (refusal := _refusal(options)) is not None:
        if torch.compiler.is_exporting():
            raise SettingError(refusal)
        torch._dynamo.graph_break(msg=refusal)
        leave: Callable[..., Answer] = torch.compiler.disable(outside)  # type: ignore[no-untyped-call]
        return leave(query, key, value, options)
    score, mask, bias, weighting, dropout, generator, backend, return_lse = options
    if is_written_out() and not (return_lse or dropout):
        return attend_by_formula(query, key, value, options)
    # What is wrong with shapes is said now: from them follow those of the operator's answer.
    checked = options._replace(mask=None, bias=None, dropout=0.0)
    request = make_request(query, key, value, checked)
    wants_lse = return_lse or request.sink is not None
    seed = torch.randint(2**31 - 1, (), generator=generator) if dropout else None
    form, tensors, integers, floats = encode(
        score, mask, bias, weighting, dropout, seed, backend, wants_lse, *current_location()
    )
    records = torch.is_grad_enabled()
    learned = [records and t.requires_grad for t in (query, key, value, *tensors)]
    is_plain = bias is None and not dropout and backend is None and not wants_lse
    if is_plain and not is_watched():
        out = _as_dot_product(request, mask, Encoded(form, tensors, integers, floats), learned)
        if out is not None:
            return out
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
    request: Request, mask: Mask | Tensor | None, encoded: Encoded, learned: list[bool]
) -> Tensor | None:
    """The answer of torch's kernel, or None if it is not the one to ask."""
    if not request.score.is_dot_product or type(request.weighting) is not Softmax:
        return None
    form = request.dot()
    # With other widths torch would hold the whole N×M matrix.
    if form is None or form.key.shape[-1] != request.value.shape[-1]:
        return None
    is_exporting = torch.compiler.is_exporting()
    # Exported graphs are for inference. Float64 is differentiated again, which the kernel cannot.
    if any(learned) and not is_exporting and request.query.dtype == torch.float64:
        return None
    is_cpu, is_flag = request.query.is_cpu, mask is not None and _is_flag(mask, request)
    if is_cpu and not is_exporting:
        return _guarded(request, form, mask, is_flag, encoded, learned)
    # On a CPU the engine does not let NaN through a mask, as torch does; an ONNX graph cannot hold
    # the engine.
    if mask is not None and not (is_flag and (not is_cpu or torch.onnx.is_in_onnx_export())):
        return None
    out = _kernel(form, request.value, None, is_flag=is_flag)
    return out.reshape(*request.leading, *out.shape[2:])


def _guarded(
    request: Request,
    form: DotForm,
    mask: Mask | Tensor | None,
    is_flag: bool,
    encoded: Encoded,
    learned: list[bool],
) -> Tensor | None:
    """Torch's kernel on a CPU, and the operator where numbers are not finite."""
    B, H, N, _ = request.query.shape
    M, E = request.value.shape[2:]
    # The kernel lets NaN through a mask and may give zeros for a query that is NaN. The operator
    # costs half a millisecond: None where it is likely to be faster, or the mask would be large.
    if any(learned) and not _is_known(B * H * N * M <= FEWEST_PAIRS_OF_A_PLANNED_STEP):
        return None
    visible = None
    if mask is not None and not is_flag:
        is_small = len(request.leading) == 2 and _is_known(B * N * M <= LARGEST_MASK)
        # Of windows and tensors alone: in their numbers nothing can be wrong.
        if not is_small or {"_Documents", "_Lengths"} & set(encode(as_mask(mask)).form.split()):
            return None
        grid = Grid((B,), H, N, M, request.query.device)
        as_mask(mask).check(grid)
        visible = as_mask(mask).formula(grid).clone()
    # Copies here and below: branches take no two views of a tensor. Compilers drop needless ones.
    query, key, value = form.query, form.key, request.value
    sums = [t.detach().abs().sum(dtype=torch.float32) for t in (query, key, value)]
    # No product of theirs is larger; NaN stays NaN.
    is_safe = (sums[0] * sums[1] + sums[2]).isfinite()
    tensors = [t.detach() if t.requires_grad else t for t in encoded.tensors]
    rest = (tensors, encoded.form, encoded.integers, encoded.floats, [False] * len(learned))

    score, inputs = request.score, (request.query, request.key, request.value)
    # Branches take and give rows of numbers: compilers may mistake the strides of anything else.
    # Heads are behind positions, as most models and the kernel have them in memory.
    shapes = [(B, t.shape[2], t.shape[1], t.shape[3]) for t in inputs]

    def unpack(*flat: Tensor) -> list[Tensor]:
        return [t.view(shape).transpose(1, 2) for t, shape in zip(flat, shapes, strict=True)]

    def exact(*flat: Tensor) -> Tensor:
        out: Tensor = attend_operator(*unpack(*flat), *rest)[0]
        return out.reshape(B, H, N, -1).transpose(1, 2).flatten()

    def fast(*flat: Tensor) -> Tensor:
        query, key, value = unpack(*flat)
        form = score.as_dot(query, key)
        assert form is not None
        return _kernel(form, value, visible, is_flag=is_flag).transpose(1, 2).flatten()

    def nothing(*flat: Tensor) -> Tensor:
        return flat[0].new_zeros(B * N * H * E)

    operands = [t.detach().transpose(1, 2).flatten().clone() for t in inputs]
    if not any(learned):
        out = torch.cond(is_safe, fast, exact, operands).view(B, N, H, E).transpose(1, 2)
    else:
        # The gradient is that of the kernel, with zeros in place of what is not finite.
        query, key, value = (torch.where(t.isfinite(), t, 0) for t in (query, key, value))
        out = _kernel(form._replace(query=query, key=key), value, visible, is_flag=is_flag)
        other = torch.cond(is_safe, nothing, exact, operands).view(B, N, H, E).transpose(1, 2)
        out = out + torch.where(is_safe, other, other - out.detach())
    assert isinstance(out, Tensor)
    return out.reshape(*request.leading, *out.shape[2:])


def _kernel(form: DotForm, value: Tensor, visible: Tensor | None, *, is_flag: bool) -> Tensor:
    kind = value.device.type
    is_mixed = torch.is_autocast_enabled(kind)
    with torch.autocast(kind, enabled=False) if is_mixed else nullcontext():
        return F.scaled_dot_product_attention(
            form.query,
            form.key,
            value,
            attn_mask=visible,
            is_causal=is_flag,
            scale=form.scale,
            enable_gqa=form.query.shape[1] != form.key.shape[1],
        )


def _is_known(claim: bool | torch.SymBool) -> bool:
    """Whether something holds for all sizes of the graph."""
    # Not at the top: it takes a second, and whoever traces has paid it.
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(claim)


def _is_flag(mask: Mask | Tensor, request: Request) -> bool:
    """Whether the mask is causal, with as many queries as keys for all sizes of the graph."""
    encoded = encode(mask)
    is_causal = encoded.form in _CAUSAL and not any(encoded.integers)
    return is_causal and _is_known(request.query.shape[2] == request.key.shape[2])
