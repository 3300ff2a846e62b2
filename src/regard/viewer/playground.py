"""What the page's playground of masks has of Python: the grammar of masks, and plans of calls."""

import json
from typing import TypedDict

from regard.checks import check_at_least
from regard.devices import CPU
from regard.errors import SettingError


class AskedPlan(TypedDict):
    """A plan of a call of ``attend``, as ``static/source.js`` wants it."""

    backend: str
    reason: str
    notes: list[str]
    bytes: int
    operations: int


_LARGEST = {"queries": 1 << 20, "keys": 1 << 20, "heads": 128, "head_dim": 512}


def grammar_module() -> str:
    """The module ``grammar.js``: what a mask may be that is typed, as ``parse_mask`` reads it."""
    from regard.attention.masks.parse import grammar

    return f"export const GRAMMAR = {json.dumps(grammar(), separators=(',', ':'))};\n"


def explained(
    mask: str, *, queries: int, keys: int, heads: int = 8, head_dim: int = 64
) -> AskedPlan:
    """What ``regard.explain`` says of a call with this mask, as ``static/source.js`` wants it.

    Nothing is attended to, and no memory is taken for queries and keys. The call has as many batch
    rows as the mask tells apart.

    Args:
        mask: An expression, as ``parse_mask`` reads it.
        queries: N.
        keys: M.
        heads: H.
        head_dim: D.

    Raises:
        SettingError: The text is no mask, or a size is out of range.
        ShapeError: The mask does not fit the sizes.

    Example:
        >>> explained("causal()", queries=512, keys=512)["backend"]
        'sdpa'
    """
    import torch

    from regard.attention import explain
    from regard.attention.masks.grid import Grid
    from regard.attention.masks.parse import parse_mask

    sizes = {"queries": queries, "keys": keys, "heads": heads, "head_dim": head_dim}
    for name, size in sizes.items():
        check_at_least(name, size, 1)
        if size > _LARGEST[name]:
            raise SettingError(f"{name} must be at most {_LARGEST[name]}; got {size}.")
    read = parse_mask(mask)
    batch = read.extent(Grid((1,), heads, queries, keys, CPU))[0]
    # Nothing is written into these, so one number serves for all.
    number = torch.empty(1, 1, 1, 1)
    plan = explain(
        number.expand(batch, heads, queries, head_dim),
        number.expand(batch, heads, keys, head_dim),
        mask=read,
    )
    return {
        "backend": plan.backend,
        "reason": plan.reason,
        "notes": list(plan.notes),
        "bytes": plan.bytes,
        "operations": plan.operations,
    }
