"""Interface of backends, their common functions, and the backend that serves every call."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.numerics import in_input_dtypes
from regard.attention.engine.request import Request

Answer = tuple[Tensor, Tensor | None]
Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]
Notes = tuple[str, ...]


class Offer(NamedTuple):
    """A way to serve a request, and all that differ from it in numbers alone.

    Attributes:
        run: Gives the mixed values (B, H, N, E) of a request, and the log-sum-exp (B, H, N) if it
            is wanted. Queries that see nothing get zeros, and a log-sum-exp of −∞. The sink is none
            of its business.
        bytes: Memory taken beyond inputs and output; or a function that estimates it.
        notes: Intermediate steps, for people; or a function that describes them.
        differentiates_once: Whether its gradient cannot be differentiated: where that is asked for,
            the tiled engine works the gradient out.
        draws_dropout: Whether its dropout has a pattern that no other backend draws. Its gradient
            then is not differentiable again.
        kernel: Makes a function of queries, keys and values alone where that is all there is to a
            request, to which small calls go at once; gives None where it is not.
    """

    run: Callable[[Request], Answer]
    bytes: int | Callable[[Request], int] = 0
    notes: Notes | Callable[[Request], Notes] = ()
    differentiates_once: bool = False
    draws_dropout: bool = False
    kernel: Callable[[Request], Kernel | None] | None = None


class Refusal(NamedTuple):
    """Answer of a backend that cannot serve a request.

    Attributes:
        why: The reason, as in "not short, since there is a bias".
    """

    why: str


class Backend(ABC):
    """A way to compute attention: which requests it serves, and how.

    Attributes:
        device: The type of the devices it is for, such as "cpu"; None is any.
        ignores_numbers: Whether offers and refusals depend on shapes, dtypes, the options, the mask
            and whether gradients are wanted, but on no number in the tensors: they are then
            remembered for calls alike in these. Unless said, it is asked each time.

    Example:
        One for calls with a single key, which gets all the weight, so that its value is the answer:

        >>> import torch
        >>> from regard.attention import Backend, Offer, Refusal, attend, explain, register_backend
        >>> class OneKey(Backend):
        ...     def offer(self, request):
        ...         asks_more = request.mask or request.dropout or request.return_lse
        ...         if asks_more or request.key.shape[1:3] != (1, 1):  # of (B, G, M, D)
        ...             return Refusal("it knows a single key only")
        ...         return Offer(lambda r: (r.value.expand(*r.query.shape[:3], -1), None))
        >>> register_backend("one_key", OneKey())
        >>> query, key, value = torch.ones(3, 4), torch.ones(1, 4), torch.tensor([[7.0, 8.0]])
        >>> explain(query, key, value).backend, attend(query, key, value).tolist()
        ('one_key', [[7.0, 8.0], [7.0, 8.0], [7.0, 8.0]])
        >>> from regard.attention.call.choice import BACKENDS
        >>> del BACKENDS["one_key"]  # the others serve it again
    """

    device: ClassVar[str | None] = None
    ignores_numbers: ClassVar[bool] = False

    @abstractmethod
    def offer(self, request: Request) -> Offer | Refusal:
        """Offer to serve a request, or refuse it with a reason."""


class Tiled(Backend):
    """The engine's own pass over blocks; see ``regard.attention.engine.tiled``."""

    ignores_numbers = True

    def offer(self, request: Request) -> Offer:
        return Offer(tiled.run, tiled.bytes_beyond, _notes_of_blocks)


def _notes_of_blocks(request: Request) -> Notes:
    sizes = tiled.sizes_of(request)
    heads = "a few heads" if sizes.splits_heads else "all heads"
    return (f"blocks of {heads}, at most {sizes.rows} queries and {sizes.pairs} pairs",)


def with_heads(tensor: Tensor, heads: int) -> Tensor:
    """Repeat shared heads of keys or values, so that each query head has its own."""
    key_heads = tensor.shape[1]
    return tensor if key_heads == heads else tensor.repeat_interleave(heads // key_heads, dim=1)


def padded(tensor: Tensor, width: int) -> Tensor:
    """Append zero columns up to a width."""
    missing = width - tensor.shape[-1]
    return F.pad(tensor, (0, missing)) if missing else tensor


class Loops(Protocol):
    """A call of attention as compiled loops read it."""

    def answer(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed values, the best scores, and the sums of powers relative to them."""

    def gradients(self, needs_grad: Sequence[bool], *saved: Tensor) -> Sequence[Tensor | None]:
        """Gradients of ``BlockInputs.flat`` from (maxima, sums of powers, d_out, d_out · out)."""


class LoopPass(torch.autograd.Function):
    """Attention by the loops that a function makes of its inputs; not differentiable twice."""

    @staticmethod
    def forward(
        ctx: Any, make: Callable[[BlockInputs], Loops], *flat: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        out, top, total = make(BlockInputs.from_flat(flat)).answer()
        ctx.make = make
        ctx.save_for_backward(out, top, total, *flat)
        return out, top + total.log()

    @staticmethod
    @in_input_dtypes
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Gradients:
        if torch.is_grad_enabled():  # ``engine.twice`` has that gradient worked out
            return (None,) * len(ctx.needs_input_grad)
        out, top, total, *flat = ctx.saved_tensors
        mean = (d_out * out).sum(dim=-1) - d_lse
        loops = ctx.make(BlockInputs.from_flat(flat))
        return (None, *loops.gradients(ctx.needs_input_grad[1:], top, total, d_out, mean))
