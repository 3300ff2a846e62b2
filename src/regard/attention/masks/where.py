"""A mask that a user writes as a function."""

from collections.abc import Callable
from math import prod
from typing import final

import torch
from torch import Tensor

from regard.attention.masks.base import Mask
from regard.attention.masks.grid import Grid
from regard.errors import SettingError, ShapeError


def where(visible: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> Mask:
    """Any rule: a function of the numbers of batch row, head, query and key.

    Args:
        visible: Called as ``visible(batch, head, query, key)`` with integer tensors that broadcast
            to (B, H, n, m); gives a boolean tensor that does, True where the query may look. It
            is asked tile by tile. Where there are several batch axes, batch rows are counted
            flattened.

    Raises:
        ShapeError: When the mask is used: the answer is not boolean, or of another shape.

    Example:
        >>> print(where(lambda batch, head, query, key: (query - key) % 2 == 0).draw(3, 3))
        1 . 1
        . 1 .
        1 . 1
    """
    if not callable(visible):
        raise SettingError(
            f"where must be given a function of batch, head, query and key; got {visible!r}."
        )
    return _Where(visible)


@final
class _Where(Mask):
    def __init__(self, visible: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.visible = visible

    def __repr__(self) -> str:
        return f"where({getattr(self.visible, '__name__', type(self.visible).__name__)})"

    def check(self, grid: Grid) -> None:
        if grid.queries and grid.keys:
            self.pairs(grid, range(1), range(1))

    def pairs(self, grid: Grid, rows: range, keys: range) -> Tensor:
        ranges = (range(prod(grid.batch)), range(grid.heads or 1), rows, keys)
        places = [torch.arange(r.start, r.stop, device=grid.device) for r in ranges]
        shapes = [tuple(-1 if axis == each else 1 for axis in range(4)) for each in range(4)]
        seen = self.visible(*(p.reshape(shape) for p, shape in zip(places, shapes, strict=True)))
        whole = tuple(len(r) for r in ranges)
        if not isinstance(seen, Tensor) or seen.dtype != torch.bool:
            came = seen.dtype if isinstance(seen, Tensor) else type(seen).__name__
            raise ShapeError(f"where must give a boolean tensor; got {came}.")
        pairs = zip(reversed(seen.shape), reversed(whole), strict=False)
        if seen.dim() > 4 or any(have not in (1, want) for have, want in pairs):
            raise ShapeError(
                f"where must give a tensor that broadcasts to (B, H, n, m) = {whole}; "
                f"got {tuple(seen.shape)}."
            )
        return seen
