"""Masks, each with the same rule as booleans over (B, H, N, M)."""

from collections.abc import Callable

import torch
from tests.formulas.sizes import Sizes
from torch import Tensor
from torch.nn import functional as F

from regard.attention import Mask, causal, dense, documents, lengths, prefix, where, window


def _grid(sizes: Sizes) -> tuple[Tensor, ...]:
    """The numbers of batch rows, heads, queries and keys, laid out to broadcast."""
    spans = (sizes.B, sizes.H, sizes.N, sizes.M)
    axes = [torch.arange(size) for size in spans]
    return tuple(a.reshape([-1 if i == at else 1 for i in range(4)]) for at, a in enumerate(axes))


def _in_runs(batch: tuple[int, ...], length: int, most: int) -> Tensor:
    """Numbers of documents that go up now and then."""
    return (torch.rand(*batch, length) < most / max(1, length)).cumsum(-1)


def _lengths(sizes: Sizes) -> tuple[Mask, Tensor]:
    n = torch.randint(0, sizes.M + 1, (sizes.B,))
    return lengths(n), _grid(sizes)[3] < n[:, None, None, None]


def _lengths_of_queries(sizes: Sizes) -> tuple[Mask, Tensor]:
    n = torch.randint(0, sizes.M + 1, (sizes.B, sizes.N))
    return lengths(n), _grid(sizes)[3] < n[:, None, :, None]


def _causal(sizes: Sizes) -> tuple[Mask, Tensor]:
    _, _, query, key = _grid(sizes)
    return causal(), key <= query + sizes.M - sizes.N


def _causal_from_the_first(sizes: Sizes) -> tuple[Mask, Tensor]:
    _, _, query, key = _grid(sizes)
    return causal(first=0), key <= query


def _window(sizes: Sizes) -> tuple[Mask, Tensor]:
    before, after = (int(torch.randint(0, 5, ())) for _ in range(2))
    query = _grid(sizes)[2] + sizes.M - sizes.N
    key = _grid(sizes)[3]
    return window(before=before, after=after), (key >= query - before) & (key <= query + after)


def _window_elsewhere(sizes: Sizes) -> tuple[Mask, Tensor]:
    first, before = int(torch.randint(-3, 4, ())), int(torch.randint(0, 9, ()))
    _, _, query, key = _grid(sizes)
    return window(before=before, first=first), key >= query + first - before


def _documents(sizes: Sizes) -> tuple[Mask, Tensor]:
    queries, keys = _in_runs((), sizes.N, 3), _in_runs((), sizes.M, 3)
    return documents(queries, keys), queries[:, None] == keys


def _documents_of_rows(sizes: Sizes) -> tuple[Mask, Tensor]:
    queries = _in_runs((sizes.B,), sizes.N, 4)
    keys = F.pad(queries, (0, max(0, sizes.M - sizes.N)), mode="replicate")[:, : sizes.M]
    return documents(queries, keys), (queries[:, :, None] == keys[:, None])[:, None]


def _documents_in_disorder(sizes: Sizes) -> tuple[Mask, Tensor]:
    queries, keys = torch.randint(0, 3, (sizes.N,)), torch.randint(0, 3, (sizes.B, sizes.M))
    return documents(queries, keys), (queries[:, None] == keys[:, None])[:, None]


def _prefix(sizes: Sizes) -> tuple[Mask, Tensor]:
    n = torch.randint(0, sizes.M + 5, (sizes.B,))
    return prefix(n), _grid(sizes)[3] < n[:, None, None, None]


def _dense(sizes: Sizes) -> tuple[Mask, Tensor]:
    shape = (sizes.B, sizes.H, sizes.N, sizes.M)
    is_full = torch.randint(0, 2, (4,)).tolist()
    visible = torch.rand([n if full else 1 for n, full in zip(shape, is_full, strict=True)]) > 0.4
    return dense(visible), visible


def _where(sizes: Sizes) -> tuple[Mask, Tensor]:
    rule = lambda batch, head, query, key: (batch + 2 * head + query + key) % 3 > 0  # noqa: E731
    return where(rule), rule(*_grid(sizes))


def _nothing(sizes: Sizes) -> tuple[Mask, Tensor]:
    return lengths(0), torch.zeros(1, 1, 1, 1, dtype=torch.bool)


# Rules that have no head's axis come first; those after can only be given to tensors with heads.
MASKS: dict[str, Callable[[Sizes], tuple[Mask, Tensor]]] = {
    "lengths": _lengths,
    "lengths of queries": _lengths_of_queries,
    "causal": _causal,
    "causal from the first": _causal_from_the_first,
    "window": _window,
    "window elsewhere": _window_elsewhere,
    "documents": _documents,
    "documents of rows": _documents_of_rows,
    "documents in disorder": _documents_in_disorder,
    "prefix": _prefix,
    "where": _where,
    "nothing": _nothing,
    "dense": _dense,
}
JOINS = {
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "& ~": lambda one, other: one & ~other,
}


def make_mask(name: str | None, sizes: Sizes) -> tuple[Mask | None, Tensor]:
    """A mask, or two joined as in "causal & lengths", and the same as booleans (B, H, N, M)."""
    whole = (sizes.B, sizes.H, sizes.N, sizes.M)
    if name is None:
        return None, torch.ones(whole, dtype=torch.bool)
    for sign, join in reversed(JOINS.items()):
        if f" {sign} " in name:
            one, other = (MASKS[each](sizes) for each in name.split(f" {sign} "))
            return join(one[0], other[0]), join(one[1], other[1]).expand(whole)
    mask, visible = MASKS[name](sizes)
    return mask, visible.expand(whole)
