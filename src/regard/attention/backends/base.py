"""Interface of backends: one way to compute attention."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from regard.attention.engine.request import Request


class Backend(ABC):
    """One way to compute attention: which calls it serves, what it takes, and the answer.

    Attributes:
        judges_by_kind: Whether ``refuse`` and ``decline`` go by nothing but shapes, dtypes, the
            device, the options, the mask and whether gradients are wanted: what they said is then
            remembered for calls alike in these. Unless said, they are asked each time.
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
