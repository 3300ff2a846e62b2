"""Masks as ranges of keys: exactly what the mask shows, and never less."""

import pytest
import torch

from regard.attention import causal, dense, documents, lengths, prefix, window
from regard.attention.masks.key_ranges import KeyRanges, VisibleKeys, is_range

B, H, N, M = 2, 3, 7, 11
EXACT = {
    "causal": causal(),
    "window": window(before=2, after=1),
    "far": window(before=0, after=10**12, first=-3),
    "beyond": causal(first=40),
    "documents": documents(torch.tensor([0, 0, 1, 1, 1, 3, 5]), torch.arange(M) // 3),
    "rows": documents(torch.arange(2 * N).reshape(2, N) // 4, torch.arange(2 * M).reshape(2, M)),
    "both": documents(torch.arange(N) // 3, torch.arange(M) // 4) & causal(),
}
LOOSE = {
    "lengths": lengths([4, 0]),
    "each": lengths(torch.arange(2 * N).reshape(2, N) % M),
    "joined": lengths([4, 9]) & causal(),
    "dense": dense(torch.eye(N, M, dtype=torch.bool)),
    "row": dense(torch.arange(M) % 4 == 2),
    "or": prefix(2) | causal(),
}


def shown(seen):
    visible = torch.ones(B, H, N, M, dtype=torch.bool)
    if seen.ranges is not None:
        first, stop = (t[:, None, :, None] for t in seen.ranges)
        places = torch.arange(M)
        visible &= (places >= first) & (places < stop)
    return visible if seen.pairs is None else visible & seen.pairs


@pytest.mark.parametrize("name", [*EXACT, *LOOSE])
def test_spans_and_pairs_show_what_the_mask_shows(name):
    bound = {**EXACT, **LOOSE}[name].bind(B, H, N, M)
    seen = VisibleKeys.of(bound, (B, H, N, M))
    assert is_range(bound) == (seen.pairs is None) == (name in EXACT)
    want = bound.dense().expand(B, H, N, M)
    assert torch.equal(shown(seen), want)
    places = torch.arange(M)
    last = torch.where(want, places, -1).amax(dim=-1)
    first = torch.where(want, places, M).amin(dim=-1)
    assert seen.reach >= (last - first + 1).max()


def test_what_all_queries_see_goes_from_the_first_such_key_to_the_last():
    seen = torch.tensor([[0, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]]).bool()
    first, stop = KeyRanges.of_all(seen, 4, 6)
    assert first.tolist() == [[2] * 4, [0] * 4, [6] * 4]
    assert stop.tolist() == [[5] * 4, [6] * 4, [0] * 4]


def test_no_mask_hides_nothing():
    assert VisibleKeys.of(None, (B, H, N, M)) == (None, None, M)


@pytest.mark.parametrize("name", ["causal", "window", "beyond", "documents", "rows", "lengths"])
@pytest.mark.parametrize(("rows", "keys"), [(2, 4), (4, 2), (16, 16)])
def test_turned_spans_hold_every_query_that_sees_a_block_of_keys(name, rows, keys):
    bound = {**EXACT, **LOOSE}[name].bind(B, H, N, M)
    ranges = VisibleKeys.of(bound, (B, H, N, M)).ranges
    assert ranges is not None
    begin, end = ranges.turned(M, rows=rows, keys=keys)
    seen = bound.dense().expand(B, H, N, M)[:, 0]
    for b in range(B):
        for block, start in enumerate(range(0, M, keys)):
            own = min(b, len(begin) - 1)
            looking = seen[b, :, start : start + keys].any(dim=-1).nonzero().flatten().tolist()
            assert set(looking) <= set(range(int(begin[own, block]), int(end[own, block])))
            if looking and name in EXACT:
                assert begin[own, block] == looking[0] // rows * rows
