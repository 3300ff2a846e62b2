"""Interface of backends, crossover sizes between them, and the one that serves everything."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs
from regard.attention.engine.gradients import Gradients
from regard.attention.engine.numerics import in_own_dtypes
from regard.attention.engine.request import Request


class Backend(ABC):
    """One way to compute attention: which calls it serves, what it takes, and the answer.

    Attributes:
        judges_by_kind: Whether ``refuse`` and ``decline`` go by nothing but shapes, dtypes, the
            device, the options, the mask, the threads and whether gradients are wanted: what they
            said is then remembered for calls alike in these. Unless said, they are asked each time.
        differentiates_once: Whether its gradient cannot be differentiated: where that is asked for,
            the tiled engine works the gradient out.

    Example:
        One for calls with a single key, which gets all the weight, so that its value is the answer:

        >>> import torch
        >>> from regard.attention import Backend, attend, explain, register_backend
        >>> from regard.attention.plan import BACKENDS
        >>> class OneKey(Backend):
        ...     def refuse(self, request):
        ...         asks_more = request.mask or request.dropout or request.return_lse
        ...         is_one = request.key.shape[1:3] == (1, 1)  # of (B, G, M, D)
        ...         return None if is_one and not asks_more else "it knows a single key only"
        ...     def bytes_beyond(self, request):
        ...         return 0
        ...     def run(self, request):
        ...         return request.value.expand(*request.query.shape[:3], -1), None
        >>> register_backend("one_key", OneKey())
        >>> query, key, value = torch.ones(3, 4), torch.ones(1, 4), torch.tensor([[7.0, 8.0]])
        >>> explain(query, key, value).backend, attend(query, key, value).tolist()
        ('one_key', [[7.0, 8.0], [7.0, 8.0], [7.0, 8.0]])
        >>> del BACKENDS["one_key"]  # the others serve it again
    """

    judges_by_kind: ClassVar[bool] = False
    differentiates_once: ClassVar[bool] = False

    @abstractmethod
    def refuse(self, request: Request) -> str | None:
        """Why this backend cannot serve, or None if it can."""

    def decline(self, request: Request) -> str | None:
        """Why another backend would serve faster, or None, as unless said, if none would.

        Asked only where it can serve.
        """
        return None

    def has_own_dropout(self, request: Request) -> bool:
        """Whether its dropout has a pattern that no other backend draws; unless said, it has not.

        Its gradient then is not differentiable again.
        """
        return False

    def notes(self, request: Request) -> tuple[str, ...]:
        """Describe intermediate steps; none by default."""
        return ()

    @abstractmethod
    def bytes_beyond(self, request: Request) -> int:
        """Memory taken beyond inputs and output."""

    @abstractmethod
    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted.

        Queries that see nothing get zeros, and a log-sum-exp of −∞. The sink is none of its
        business.
        """


# Crossover sizes, measured with one thread: ``benchmarks/records/backend_choice.json`` has what
# each choice comes to beside the fastest.

# Up to so many keys, matrix products over whole sentences beat the fused kernel's gradient.
MOST_KEYS_OF_SHORT = 128
# For fewer scores than this, one call of the fused kernel is cheaper than several of anything else;
# with its gradient, for fewer than twice as many, and where it gains by threads for eight times.
FEWEST_PAIRS, FEWEST_PAIRS_OF_SHORT, FEWEST_PAIRS_IN_THREADS = 2**15, 2**16, 2**18
# Up to so many scores of a batch row, a rule of distances is written out for the fused kernel; up
# to twice as many where a gradient is wanted.
MOST_PAIRS_OF_A_RULE = 2**14
# From so many keys on, compiled loops that leave out what is hidden beat the fused kernel's
# gradient, where each query sees a range of the keys; where all see the same ones, up to so many.
FEWEST_KEYS_OF_LOOPS, MOST_KEYS_OF_LENGTHS = 256, 512
# Blocks of so many queries along a band are about so many times slower for each pair than the fused
# kernel with a mask, and worth it from so many pairs on.
BAND_ROWS, BAND_COST, FEWEST_PAIRS_OF_A_BAND = 64, 2, 2**16
# With more of the grid than this inside documents, one call with a mask is as fast as one for each.
LARGEST_SHARE_OF_DOCUMENTS = 0.5


class Tiled(Backend):
    """The engine's own pass over blocks; see ``regard.attention.engine.tiled``."""

    def refuse(self, request: Request) -> str | None:
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        sizes = tiled.sizes_of(request)
        heads = "a few heads" if sizes.splits_heads else "all heads"
        return (f"blocks of {heads}, at most {sizes.rows} queries and {sizes.pairs} pairs",)

    def bytes_beyond(self, request: Request) -> int:
        return tiled.bytes_beyond(request)

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        return tiled.run(request)


class Loops(Protocol):
    """One call of attention as compiled loops read it."""

    def answer(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed values, the best scores, and the sums of powers relative to them."""

    def gradients(self, needs_grad: Sequence[bool], *known: Tensor) -> Sequence[Tensor | None]:
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
    @in_own_dtypes
    def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> Gradients:
        if torch.is_grad_enabled():  # ``plan`` has that gradient worked out elsewhere
            return (None,) * len(ctx.needs_input_grad)
        out, top, total, *flat = ctx.saved_tensors
        mean = (d_out * out).sum(dim=-1) - d_lse
        loops = ctx.make(BlockInputs.from_flat(flat))
        return (None, *loops.gradients(ctx.needs_input_grad[1:], top, total, d_out, mean))
