"""What a backend is: one way to compute attention."""

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
    """

    judges_by_kind: ClassVar[bool] = False

    @abstractmethod
    def refuse(self, request: Request) -> str | None:
        """Why this backend cannot serve, or None if it can."""

    def decline(self, request: Request) -> str | None:
        """Why another backend would serve faster, or None, as unless said, if none would.

        Asked only where it can serve.
        """
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        """What is done on the way, in words: nothing, unless said."""
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
