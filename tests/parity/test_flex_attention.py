"""Against torch's flex_attention: forward only on a CPU, and uncompiled, which is its formula."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from regard.attention import (
    ScaledDot,
    alibi,
    attend,
    causal,
    documents,
    lengths,
    prefix,
    window,
)

pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
]

N = 57
IDS = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 30, 1, 21]))
SIZES = torch.tensor([41, 57])
MASKS = {
    "causal": (causal(), lambda b, h, i, j: i >= j),
    "window": (window(before=9, after=2), lambda b, h, i, j: (j >= i - 9) & (j <= i + 2)),
    "lengths": (lengths(SIZES), lambda b, h, i, j: j < SIZES[b]),
    "documents": (documents(IDS), lambda b, h, i, j: IDS[i] == IDS[j]),
    "documents in order": (
        documents(IDS) & causal(),
        lambda b, h, i, j: (IDS[i] == IDS[j]) & (i >= j),
    ),
    "prefix": (prefix(11) | causal(), lambda b, h, i, j: (j < 11) | (i >= j)),
}
SLOPES = 2.0 ** -(2 * torch.arange(1, 5))


def make(groups=4):
    return [torch.randn(2, heads, N, 16) for heads in (4, groups, groups)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("groups", [4, 2])
def test_masks(mask, groups):
    ours, theirs = MASKS[mask]
    inputs = make(groups)
    block = create_block_mask(theirs, 2, None, N, N, device="cpu")
    want = flex_attention(*inputs, block_mask=block, enable_gqa=groups != 4)
    torch.testing.assert_close(attend(*inputs, mask=ours), want, atol=1e-5, rtol=0)


def test_a_soft_cap():
    inputs = make()
    want = flex_attention(*inputs, score_mod=lambda s, b, h, i, j: 2 * torch.tanh(s / 2))
    torch.testing.assert_close(
        attend(*inputs, score=ScaledDot(softcap=2.0)), want, atol=1e-5, rtol=0
    )


def test_slopes_of_distances():
    inputs = make()
    want = flex_attention(*inputs, score_mod=lambda s, b, h, i, j: s - SLOPES[h] * (i - j).abs())
    torch.testing.assert_close(attend(*inputs, bias=alibi()), want, atol=1e-5, rtol=0)
