"""Choice of the backend that serves a call, with the reason."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.backends.additive_cpu import AdditiveCpu
from regard.attention.backends.additive_triton import AdditiveTriton
from regard.attention.backends.base import Backend, Tiled
from regard.attention.backends.dot_cpu import DotCpu
from regard.attention.backends.flash import Flash
from regard.attention.backends.packed import Packed
from regard.attention.backends.sdpa import Sdpa
from regard.attention.backends.short import Short
from regard.attention.engine import tiled
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.options import AttendOptions, options_of, takes
from regard.attention.engine.request import Request, make_request, without_autocast
from regard.attention.weighting import apply_sink
from regard.checks import choose
from regard.errors import SettingError

# In the order they are tried; the last serves everything.
BACKENDS: dict[str, Backend] = {
    "short": Short(),
    "flash": Flash(),
    "packed": Packed(),
    "sdpa": Sdpa(),
    "additive_cpu": AdditiveCpu(),
    "additive_triton": AdditiveTriton(),
    "dot_cpu": DotCpu(),
    "tiled": Tiled(),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a call of ``attend`` would be served: a value to print or to test.

    Attributes:
        backend: The name of the path.
        reason: Why this one: what each faster path refused.
        notes: What is done on the way.
        bytes: Memory taken beyond inputs and output, an estimate.
        operations: Multiplications and additions of the forward pass if every key is visible.

    Example:
        >>> import torch
        >>> from regard.attention import causal, explain
        >>> plan = explain(*torch.zeros(3, 1, 2, 64, 8), mask=causal())
        >>> plan.backend, plan.operations > 0
        ('sdpa', True)
    """

    backend: str
    reason: str
    notes: tuple[str, ...]
    bytes: int
    operations: int

    def __str__(self) -> str:
        """A few lines for people."""
        lines = [f"{self.backend}: {self.reason}", *(f"  {note}" for note in self.notes)]
        lines.append(f"  about {_metric(self.operations)} operations")
        lines.append(f"  about {_metric(self.bytes)}B beyond inputs and output")
        return "\n".join(lines)


def register_backend(name: str, backend: Backend) -> None:
    """Let ``attend`` know a backend of one's own; it is tried before the others.

    Args:
        name: What it is called; a backend of this name is replaced.
        backend: The backend.

    Example:
        >>> register_backend("blocks", Tiled())  # tried first, and serves everything
        >>> print(explain(torch.zeros(3, 4), torch.zeros(5, 4)).backend)
        blocks
        >>> del BACKENDS["blocks"]
    """
    others = {each: other for each, other in BACKENDS.items() if each != name}
    BACKENDS.clear()
    BACKENDS.update({name: backend, **others})


def pick_backend(request: Request, pinned: str | None) -> Backend:
    """The backend that serves a request; raises SettingError if a pinned one refuses."""
    if pinned is not None:
        backend = choose("backend", pinned, BACKENDS)
        if (refusal := backend.refuse(request)) is not None:
            raise SettingError(
                f"backend must be able to serve the call; got {pinned!r}, but {refusal}. "
                "Leave backend=None to have one chosen."
            )
        return backend
    cache = request.cache
    for backend in BACKENDS.values():
        is_known = backend.judges_by_kind and backend in cache
        if (cache[backend] if is_known else _objection(backend, request)) is None:
            return backend
    raise AssertionError("the last backend serves everything")


def serve(request: Request, pinned: str | None) -> tuple[Tensor, Tensor | None]:
    """The answer of a request's backend, in its dtypes: (B, H, N, E), and log-sum-exp if wanted."""
    # Even a context without effect, or asking for one device, is felt in small calls.
    if not torch._C._is_any_autocast_enabled():
        return _serve_request(request, pinned)
    with without_autocast(request.query.device.type):
        return _serve_request(request, pinned)


def answer(request: Request, pinned: str | None) -> tuple[Tensor, Tensor | None]:
    """The answer of ``attend``: that of ``serve``, with the sink, in the axes of the call."""
    out, lse = serve(request, pinned)
    if request.sink is not None:
        assert lse is not None
        out, lse = apply_sink(request.sink, out, lse)
    shape = request.leading
    if len(shape) != 2:  # two are (B, H), as backends have it
        out = out.reshape(*shape, *out.shape[2:])
        lse = None if lse is None else lse.reshape(*shape, lse.shape[-1])
    return out, lse


@takes(AttendOptions)
def explain(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    return_lse: bool = False,
    **options: Unpack[AttendOptions],
) -> Plan:
    """How ``attend`` would serve this call: which backend, why, bytes and operations.

    Takes what ``attend`` takes, checks it alike, and attends to nothing.

    Example:
        >>> plan = explain(torch.zeros(2, 8, 512, 64), torch.zeros(2, 8, 512, 64))
        >>> plan.backend
        'sdpa'
    """
    call = options_of(explain, {**options, "return_lse": return_lse})
    request = make_request(query, key, key if value is None else value, call)
    backend = pick_backend(request, call.backend)
    refusals, name = [], ""
    for name, other in BACKENDS.items():
        if other is backend:
            break
        refusals.append(f"not {name}, since {_objection(other, request)}")
    reason = "; ".join(refusals) or "the fastest path that serves it"
    B, H, N, D = request.query.shape
    M, E = request.value.shape[-2:]
    return Plan(
        name,
        reason if call.backend is None else "asked for",
        backend.notes(request),
        backend.bytes_beyond(request),
        2 * B * H * N * M * (D + E),
    )


def _objection(backend: Backend, request: Request) -> str | None:
    """Why a backend cannot serve, or why it would rather not; None if it is the one to take."""
    refusal = backend.refuse(request)
    objection = backend.decline(request) if refusal is None else refusal
    if backend.judges_by_kind:
        request.cache[backend] = objection
    return objection


def _serve_request(request: Request, pinned: str | None) -> tuple[Tensor, Tensor | None]:
    backend = pick_backend(request, pinned)
    if not request.key.shape[2]:
        # No keys at all: zeros that keep their place in the graph.
        empty = request.query[..., :0]
        value = request.value.repeat_interleave(
            request.query.shape[1] // max(1, request.value.shape[1]), dim=1
        )
        wide = torch.promote_types(request.query.dtype, torch.float32)
        nothing = empty.new_full(empty.shape[:3], float("-inf"), dtype=wide)
        return empty @ value, nothing if request.return_lse else None
    is_own_pattern = bool(request.dropout) and backend.has_own_dropout(request)
    has_second_gradient = backend.differentiates_once and not is_own_pattern
    if request.dropout and request.seed is None and has_second_gradient:
        request.seed = request.draw_seed()  # one for both gradients
    out, lse = backend.run(request)
    if has_second_gradient and out.requires_grad:
        inputs = (request.query, request.key, request.value, request.bias, *request.tensors())
        return differentiable_twice(lambda: request, out, lse, inputs)
    return out, lse


def differentiable_twice(
    make_request: Callable[[], Request],
    out: Tensor,
    lse: Tensor | None,
    inputs: tuple[Tensor | None, ...],
) -> tuple[Tensor, Tensor | None]:
    """An answer whose gradient can be differentiated: as that of the tiled engine."""
    twice: tuple[Tensor, Tensor | None] = _Twice.apply(make_request, out, lse, *inputs)  # type: ignore[no-untyped-call]
    return twice


class _Twice(torch.autograd.Function):
    """An answer as it is; a gradient that is to be differentiated is that of the tiled engine."""

    @staticmethod
    def forward(
        ctx: Any,
        make_request: Callable[[], Request],
        out: Tensor,
        lse: Tensor | None,
        *inputs: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        ctx.make_request, ctx.shape = make_request, out.shape
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        return out.view_as(out), None if lse is None else lse.view_as(lse)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> Gradients:
        inputs = ctx.saved_tensors
        if not torch.is_grad_enabled() or (d_out is None and d_lse is None):
            return (None, d_out, d_lse, *(None for _ in inputs))
        # Views, as one tensor may be query, key and value.
        query, key, value = (tensor.view_as(tensor) for tensor in inputs[:3])
        request = replace(ctx.make_request(), query=query, key=key, value=value)
        d_out = query.new_zeros(ctx.shape) if d_out is None else d_out
        d_lse = d_out.new_zeros(ctx.shape[:3]) if d_lse is None else d_lse
        leaves = (query, key, value, *inputs[3:])
        with without_autocast(query.device.type):
            pairs = tiled.input_gradients(request, d_out, d_lse)
            differentiable = [leaf for leaf in leaves if leaf is not None]
            grads = iter(tiled.chained(pairs, differentiable, create_graph=True))
        needs = (leaf is not None and leaf.requires_grad for leaf in leaves)
        return (None, None, None, *(next(grads) if need else None for need in needs))


def _metric(number: int) -> str:
    size = float(number)
    for prefix in ("", "k", "M", "G"):
        if size < 1000:
            return f"{size:.3g} {prefix}"
        size /= 1000
    return f"{size:.3g} T"
