"""The call: attention of queries over keys, mixing values."""

from typing import Literal, Unpack, overload

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import forward_ad

from regard.attention.biases import PositionBias
from regard.attention.call.plan import plan_of
from regard.attention.engine.options import AttendOptions, CallOptions, refuse_options
from regard.attention.engine.request import Call
from regard.attention.graph.formula import attend_under_transforms
from regard.attention.graph.tracing import attend_in_graph
from regard.attention.masks.base import Mask
from regard.attention.observing import EDITOR, OBSERVER, Mixed, announce
from regard.attention.scores import Score
from regard.attention.weighting import Weighting

_DEFAULTS = CallOptions()


@overload
def attend(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    return_lse: Literal[False] = ...,
    **options: Unpack[AttendOptions],
) -> Float[Tensor, "*b N E"]: ...


@overload
def attend(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    return_lse: Literal[True],
    **options: Unpack[AttendOptions],
) -> tuple[Float[Tensor, "*b N E"], Float[Tensor, "*b N"]]: ...


def attend(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    score: Score = _DEFAULTS.score,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    weighting: Weighting = _DEFAULTS.weighting,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    backend: str | None = None,
    return_lse: bool = False,
    **foreign: object,
) -> Float[Tensor, "*b N E"] | tuple[Float[Tensor, "*b N E"], Float[Tensor, "*b N"]]:
    """The values mixed for each query, weighted by how well its key matches.

    ``softmax(score(query, key) + bias) · value`` over the keys the mask leaves visible: equation
    1 of Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, for any score.

    A query with nothing to see, because the mask says so or every score is −inf, gets zeros, a
    log-sum-exp of −inf and zero gradients. The answer of a query that does not see a key is not
    reached by NaN in it; where a GPU's fused kernel serves, that holds for keys no query sees. NaN
    in a query, or in a key that it sees, makes its answer NaN.
    Heads are axis −3 and may share keys (H a multiple of G) only where query and key both have
    four axes or more; with fewer, leading axes broadcast.

    ``torch.compile`` and ``torch.export`` take it as one operator that plans when it runs, so one
    graph serves all lengths. A ``Custom`` score, ``where`` or a class of one's own runs between
    two graphs, and cannot be exported. Under the transforms of ``torch.func`` (``vmap``, ``grad``,
    ``jacrev``, ``jvp``, …) it is the formula itself, with the whole matrix of scores.

    Args:
        query: One vector per query.
        key: One vector per key, which queries are matched with.
        value: One vector per key, which is mixed. None mixes the keys themselves.
        score: How a query and a key match.
        mask: Which keys a query may look at. None lets every query see every key.
        bias: Added to the scores: a tensor that broadcasts to (*batch, heads, N, M), or a rule of
            the distance such as ``alibi()``.
        weighting: How scores become weights.
        dropout: The fraction of weights set to zero; the others grow by 1 / (1 − dropout).
        generator: Where the dropout's seed is drawn. None is torch's own generator, with which
            torch's kernel draws dropout on a GPU; its gradient cannot be differentiated again.
        backend: "short", "packed", "sdpa", "additive_cpu", "additive_triton",
            "dot_cpu" or "tiled". None takes the fastest that serves.
        return_lse: Whether to return log Σ exp(score) of each query as well; differentiable.
        **foreign: Options of other libraries; the error gives their names here.

    Returns:
        The mixed values; with ``return_lse`` also the log-sum-exp, of float32 at least.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: An option is unknown or out of range, or the pinned backend cannot serve; or
            ``torch.jit.trace`` asks, or an ONNX graph is to hold an option that ONNX cannot.

    Example:
        >>> keys = torch.tensor([[10.0, 0.0], [0.0, 10.0]])
        >>> attend(torch.tensor([[10.0, 0.0]]), keys, torch.tensor([[1.0], [2.0]]))
        tensor([[1.]])
    """
    if foreign:
        refuse_options(attend, foreign)
    if value is None:
        value = key
    options = CallOptions(score, mask, bias, weighting, dropout, generator, backend, return_lse)
    if torch.compiler.is_compiling():
        return attend_in_graph(query, key, value, options, outside=attend)
    if (
        torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._is_tracing()
    ):
        return attend_under_transforms(query, key, value, options)
    edit = None
    if OBSERVER.get() is not None or EDITOR.get() is not None:
        is_plain = not (dropout or return_lse or backend or torch.is_grad_enabled())
        mixed = Mixed(value=value) if is_plain else None
        edit = announce(query, key, options, mixed)
        if mixed is not None and mixed.out is not None:
            return mixed.out
        if edit is not None:
            query, key, value = edit.inputs(query, key, value)
            options = options._replace(mask=edit.mask)
    call = Call(query, key, value, options)
    plan, request = plan_of(call)
    out, lse = plan.run(call, request)
    if edit is not None and edit.finish is not None:
        out = edit.finish(out, value)
    return (out, lse) if return_lse and lse is not None else out
