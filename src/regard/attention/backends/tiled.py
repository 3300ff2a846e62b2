"""The backend that serves everything: block by block of queries, in plain torch operations."""

from torch import Tensor

from regard.attention.backends.base import Backend
from regard.attention.engine import tiled
from regard.attention.engine.request import Request


class Tiled(Backend):
    """The engine's own pass over blocks; see ``regard.attention.engine.tiled``."""

    def refuse(self, request: Request) -> str | None:
        """None: it serves everything."""
        return None

    def notes(self, request: Request) -> tuple[str, ...]:
        """Describe intermediate steps."""
        sizes = tiled.sizes_of(request)
        heads = "a few heads" if sizes.splits_heads else "all heads"
        return (f"blocks of {heads}, at most {sizes.rows} queries and {sizes.pairs} pairs",)

    def bytes_beyond(self, request: Request) -> int:
        """Memory taken beyond inputs and output."""
        return tiled.bytes_beyond(request)

    def run(self, request: Request) -> tuple[Tensor, Tensor | None]:
        """The mixed values (B, H, N, E), and the log-sum-exp (B, H, N) if it is wanted."""
        return tiled.run(request)
