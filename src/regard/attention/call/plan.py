"""Plans of calls: which backend serves, why, and how; each is remembered for calls alike."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack, cast

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.backends.base import Answer, Backend, Kernel, Offer, with_heads
from regard.attention.biases import PositionBias
from regard.attention.call.choice import BACKENDS, choose_backend, is_small
from regard.attention.engine.options import AttendOptions, options_of, takes
from regard.attention.engine.request import (
    PLAIN_SCORES,
    Call,
    Request,
    make_request,
    without_autocast,
)
from regard.attention.engine.twice import differentiable_twice
from regard.attention.masks.base import Mask
from regard.attention.masks.bound import MEMORY
from regard.attention.weighting import Softmax, apply_sink


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan by which a call of ``attend`` is served: a value to print or to test.

    Attributes:
        backend: The name of the path.
        reason: Why this one: the refusal of each faster path.
        notes: Steps on the way, such as padding.
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
    notes: tuple[str, ...] = ()
    bytes: int = 0
    operations: int = 0
    offer: Offer | None = field(default=None, compare=False, repr=False)
    # torch's own, where it is all that a call takes.
    kernel: Kernel | None = field(default=None, compare=False, repr=False)
    backends: tuple[Backend, ...] = field(default=(), compare=False, repr=False)  # there were

    def __str__(self) -> str:
        """A few lines for people."""
        lines = [f"{self.backend}: {self.reason}", *(f"  {note}" for note in self.notes)]
        lines.append(f"  about {_metric(self.operations)} operations")
        lines.append(f"  about {_metric(self.bytes)}B beyond inputs and output")
        return "\n".join(lines)

    def run(self, call: Call, request: Request | None) -> Answer:
        """Answer a call like the one planned, in its axes, from its request if that is made.

        A bare kernel serves numbers that are finite. Others are left to the backend, where a
        hidden NaN reaches nothing.
        """
        # Even a context without effect, or asking for one device, is felt in small calls.
        if self.kernel is not None and not torch._C._is_any_autocast_enabled():
            query, key, value = inputs = call[:3]
            out = self.kernel(query, key, value)
            # One sum for all: each is a call that takes as long as the numbers.
            read = inputs[:2] if call.options.mask is None else (*inputs, out)
            total = torch.cat(read, -2).sum().item()
            if total - total == 0:
                if not out.requires_grad:
                    return out, None
                alike = partial(make_request, call, is_checked=True)
                return differentiable_twice(alike, out, None, inputs)
        request = request or make_request(call, is_checked=True)
        out, lse = self.serve(request)
        if request.sink is not None:
            assert lse is not None
            out, lse = apply_sink(request.sink, out, lse)
        shape = request.leading
        if len(shape) != 2:  # two are (B, H), as backends have it
            out = out.reshape(*shape, *out.shape[2:])
            lse = None if lse is None else lse.reshape(*shape, lse.shape[-1])
        return out, lse

    def serve(self, request: Request) -> Answer:
        """The answer to a request, in its dtypes: (B, H, N, E), and log-sum-exp if wanted."""
        offer = self.offer
        assert offer is not None
        # A pattern of dropout that is the offer's own has no second gradient.
        is_once = offer.differentiates_once and not (request.dropout and offer.draws_dropout)
        with without_autocast(request.query.device.type):
            if not (request.query.shape[1] and request.key.shape[2]):
                return _nothing_of(request)
            if request.dropout and is_once:
                request.seed = request.draw_seed()  # one for both gradients
            out, lse = offer.run(request)
        if is_once and out.requires_grad:
            inputs = (request.query, request.key, request.value, request.bias, *request.tensors())
            return differentiable_twice(lambda: request, out, lse, inputs)
        return out, lse


def plan_of(call: Call) -> tuple[Plan, Request | None]:
    """The plan of a call, remembered or made; with it the request that it was made of, or None."""
    mask, signature = cast("Mask | None", call.options.mask), signature_of(call)
    backends = tuple(BACKENDS.values())
    if signature is not None:
        plan: Plan | None = MEMORY.get(mask, 0, signature)  # small, whatever the pairs
        if plan is not None and plan.backends == backends:
            return plan, None
    request = make_request(call)
    with without_autocast(request.query.device.type):  # a score is brought to dot products here
        name, offer, reason, is_lasting = choose_backend(request, call.options.backend)
    plan = Plan(name, reason, offer=offer)
    # Inputs that had to be brought to four axes would have to be each time.
    is_as_given = request.query is call.query and request.key is call.key
    if signature is not None and is_lasting and is_as_given and request.value is call.value:
        kernel = offer.kernel(request) if offer.kernel is not None and is_small(request) else None
        plan = replace(plan, kernel=kernel, backends=backends)
        MEMORY.keep(mask, 0, signature, plan)
    return plan, request


def signature_of(call: Call) -> Hashable | None:
    """Signature, beside the mask, of calls that share a plan; None where that cannot be known."""
    query, key, value, options, wants_grad, seed = call
    score, mask, bias, weighting, dropout, generator, backend, return_lse = options
    if not type(query) is type(key) is type(value) is Tensor or type(score) not in PLAIN_SCORES:
        return None
    if type(weighting) is not Softmax or weighting.sink is not None:
        return None
    if mask is not None and not hasattr(mask, "alike"):  # to ask for its class takes longer
        return None
    if query.is_nested or key.is_nested or value.is_nested:
        return None
    devices = None
    if not (query.is_cpu and key.is_cpu and value.is_cpu):
        devices = (query.device, key.device, value.device)
    further: tuple[object, ...] = ()
    is_plain = bias is None and generator is None and backend is None and seed is None
    if not is_plain or return_lse is not False or type(dropout) is not float or dropout:
        # As text, since a wrong value may equal a right one: 0 is no flag.
        text = repr((dropout, backend, return_lse))
        further = (text, type(generator), seed is None, torch.is_grad_enabled(), type(bias))
        tensors = bias.tensors() if isinstance(bias, PositionBias) else (bias,)
        for tensor in () if bias is None else tensors:
            if not isinstance(tensor, Tensor) or tensor.is_nested:
                return None  # the check of inputs raises
            further += (tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad)
    if not wants_grad and torch.is_grad_enabled():
        wants_grad = query.requires_grad or key.requires_grad or value.requires_grad
    shapes, dtypes = (query.shape, key.shape, value.shape), (query.dtype, key.dtype, value.dtype)
    is_inference, threads = torch.is_inference_mode_enabled(), torch.get_num_threads()
    return (shapes, dtypes, devices, score, wants_grad, further, is_inference, threads)


@takes(AttendOptions)
def explain(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    return_lse: bool = False,
    **options: Unpack[AttendOptions],
) -> Plan:
    """Return the plan of ``attend`` for this call: which backend, why, bytes and operations.

    Takes the arguments of ``attend``, checks them alike, and attends to nothing.

    Example:
        >>> plan = explain(torch.zeros(2, 8, 512, 64), torch.zeros(2, 8, 512, 64))
        >>> plan.backend
        'sdpa'
    """
    chosen = options_of(explain, {**options, "return_lse": return_lse})
    call = Call(query, key, key if value is None else value, chosen)
    plan, request = plan_of(call)
    request = make_request(call, is_checked=True) if request is None else request
    assert plan.offer is not None
    notes, size = plan.offer.notes, plan.offer.bytes
    B, H, N, D = request.query.shape
    M, E = request.value.shape[-2:]
    return replace(
        plan,
        notes=notes(request) if callable(notes) else notes,
        bytes=size(request) if callable(size) else size,
        operations=2 * B * H * N * M * (D + E),
    )


def _nothing_of(request: Request) -> Answer:
    """The answer where there are no heads or no keys: zeros that keep their place in the graph."""
    empty, value = request.query[..., :0], with_heads(request.value, request.query.shape[1])
    wide = torch.promote_types(empty.dtype, torch.float32)
    nothing = empty.new_full(empty.shape[:3], float("-inf"), dtype=wide)
    return empty @ value[..., :0, :], nothing if request.return_lse else None


def _metric(number: int) -> str:
    power = min(4, (len(str(number)) - 1) // 3)
    return f"{number / 1000**power:.3g} {('', 'k', 'M', 'G', 'T')[power]}"
