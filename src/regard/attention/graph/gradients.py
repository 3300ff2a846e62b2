"""The gradients of an encoded call of ``attend``, for operators that keep no graph of it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor

from regard.attention.backends.tiled import Tiled
from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Request, make_request
from regard.attention.graph.encoding import Encoded, decode
from regard.attention.plan import pick_backend, serve

# The form, the integers and the floats that are encoded, and of which tensors a gradient may be
# asked for.
Rest = tuple[str, Sequence[int], Sequence[float], Sequence[bool]]
Pairs = list[tuple[Tensor, Tensor]]


@contextmanager
def recording(kind: str) -> Iterator[None]:
    """Gradients can be taken inside, though operators run below autograd and its view tracking.

    Args:
        kind: Of the device, whose automatic precision is left out as in ``attend``.
    """
    keys = (torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView)
    with ExitStack() as stack:
        for key in keys:
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        if torch.is_autocast_enabled(kind):
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(torch.enable_grad())
        yield


def request_of(given: Sequence[Tensor], rest: Rest) -> tuple[Request, str | None]:
    """The request of a call, and the pinned backend.

    Args:
        given: Query, key, value and the encoded tensors.
        rest: What else is encoded.
    """
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
    """Mixed values and log-sum-exp by the tiled engine, and what makes its gradient cheaper.

    The latter is (B, H, N, 2): the best score of each query, and its sum of powers.
    """
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
    """The gradients of a call.

    Args:
        given: Query, key, value and the encoded tensors.
        wanted: Which of them have a gradient that is wanted.
        rest: See ``request_of``.
        d_answer: The gradients of the mixed values and of the log-sum-exp.
        answer: The mixed values, and the sums of ``answer_and_sums``.

    Returns:
        The gradients that are wanted.
    """
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
    """The gradients of the gradients of a call.

    The answer is no input of theirs, but what the inputs give.

    Args:
        d_grads: The gradients of what ``gradients`` returned.
        given: See ``gradients``.
        wanted: See there.
        rest: See there.
        d_answer: See there.

    Returns:
        Those of both parts of ``d_answer``, and those of ``given`` that are wanted.
    """
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
    """The inputs of the tiled engine with their gradients, without its forward pass.

    Where gradients are enabled, these can be differentiated.
    """
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
