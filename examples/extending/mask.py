"""A mask: which keys a query may look at.

``pairs`` answers for a tile; joining, drawing, summaries and ``repr`` come for free.

In the package: ``attention/masks/NAME.py``, and a line of RULES in ``attention/masks/parse.py``.
"""

import torch

from regard.attention import Mask, parse_mask
from regard.attention.masks.parse import NUMBERS, register_mask


class Every(Mask):
    """Every so many keys, the first among them."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def __repr__(self):
        return f"every({self.n})"

    def pairs(self, grid, rows, keys):
        places = torch.arange(keys.start, keys.stop, device=grid.device)
        return (places % self.n == 0).expand(len(rows), len(keys))


register_mask("every", Every, NUMBERS)
print(parse_mask("every(2) & causal()").draw(3, 5))
