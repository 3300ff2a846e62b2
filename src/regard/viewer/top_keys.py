"""Selection of the largest weights of long texts for a page, within its budget.

Every head has the largest weight of each query kept before any has its second; where there is not
room for all of them, those that look at the fewest tokens come first.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from regard.choices import check_choice
from regard.viewer.packing import PackedArray, pack, pack_integers
from regard.viewer.parts import Array, Part

HeadName = tuple[str, int, int]

_ROOM = 750_000  # characters of the page for the keys and weights of all heads together
_SAMPLE = 1024  # queries by which the room that a head takes is estimated


def depths_of(
    parts: Sequence[Part],
    long: set[tuple[str, int]],
    top_heads: Iterable[HeadName] | Literal["all"] | None,
) -> dict[HeadName, int]:
    """How many keys of each query are kept, for the heads of which any are.

    Args:
        parts: All attentions.
        long: Kind and layer of those whose exact rows are not kept, which need none.
        top_heads: The heads that are wanted, each with all its keys; None goes by the room.
    """
    found = [
        (float(part.entropy[place].mean()), (*part.name, head), part, place)
        for part in parts
        if part.name in long and part.top_keys[0].size
        for place, head in enumerate(part.heads)
    ]
    if isinstance(top_heads, str):
        check_choice("top_heads", top_heads, Literal["all"])
    if top_heads is not None:
        wanted = {name for _, name, *_ in found} if top_heads == "all" else set(top_heads)
        return {name: part.top_keys.shape[-1] for _, name, part, _ in found if name in wanted}
    found.sort(key=lambda one: one[:2])
    depths: dict[HeadName, int] = {}
    taken: dict[HeadName, int] = {}
    room = _ROOM
    for depth in _ladder(max((part.top_keys.shape[-1] for *_, part, _ in found), default=0)):
        before = room
        for _, name, part, place in found:
            keys = min(depth, part.top_keys.shape[-1])
            more = _size(part, place, keys) - taken.get(name, 0)
            if keys > depths.get(name, 0) and (more <= room or not depths):
                depths[name], taken[name] = keys, taken.get(name, 0) + more
                room -= more
        if room == before:
            break  # deeper ones take more
    return depths


def packed_top(
    part: Part, depths: Mapping[HeadName, int]
) -> tuple[tuple[int, ...], tuple[int, ...], PackedArray | None, PackedArray | None]:
    """The heads of a layer whose largest weights are kept, how many of each, keys and weights."""
    heads = tuple(head for head in part.heads if (*part.name, head) in depths)
    counts = tuple(depths[(*part.name, head)] for head in heads)
    if not heads:
        return (), (), None, None
    at = [part.heads.index(head) for head in heads]
    kept = np.arange(max(counts)) < np.array(counts)[:, None, None]  # (H, 1, K)
    keys = np.where(kept, part.top_keys[at][..., : max(counts)], -1)
    weights = np.where(kept, part.top_weights[at][..., : max(counts)], 0.0)
    return heads, counts, *_packed(keys, weights)


def _packed(keys: Array, weights: Array) -> tuple[PackedArray, PackedArray]:
    """As steps or as they are, whichever is shorter: keys may go on with their query, or jump."""
    either = (False, True)
    return (
        min((pack_integers(keys, steps=one) for one in either), key=lambda one: len(one.data)),
        min(
            (pack(weights, scale="log", steps=one) for one in either), key=lambda one: len(one.data)
        ),
    )


def _ladder(most: int) -> list[int]:
    """1, 2, 4, …, and the most there are."""
    return [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]


def _size(part: Part, place: int, keys: int) -> int:
    """About how many characters a head takes with so many keys a query."""
    N = part.top_keys.shape[1]
    first = max(0, (N - _SAMPLE) // 2)
    sample = slice(first, first + _SAMPLE)
    packed = _packed(
        part.top_keys[[place], sample, :keys], part.top_weights[[place], sample, :keys]
    )
    characters = sum(len(one.data) for one in packed)
    return characters * int(N) // max(1, min(int(N), _SAMPLE))
