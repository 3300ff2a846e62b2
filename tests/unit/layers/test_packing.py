"""Packed batches: what is cut out comes back in its place, and gradients with it."""

import torch
from torch.autograd import gradcheck

from regard.layers import Packing

LENGTHS = torch.tensor([3, 1, 5, 2])
WIDTH = 6


def test_padding_is_cut_out_and_comes_back_as_zeros():
    padded = torch.randn(4, WIDTH, 2, 3)
    packing = Packing(LENGTHS, WIDTH)
    packed = packing.pack(padded)
    assert packed.shape == (11, 2, 3)
    back = packing.pad(packed)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(back[row, :length], padded[row, :length])
        assert not back[row, length:].any()


def test_ids_can_be_packed_too():
    ids = torch.arange(4 * WIDTH).view(4, WIDTH)
    expected = [row[:length] for row, length in zip(ids, LENGTHS.tolist(), strict=True)]
    assert torch.equal(Packing(LENGTHS, WIDTH).pack(ids), torch.cat(expected))


def test_gradients_follow():
    packing = Packing(LENGTHS, WIDTH)
    padded = torch.randn(4, WIDTH, 2, dtype=torch.float64, requires_grad=True)
    packed = torch.randn(11, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(packing.pack, (padded,))
    assert gradcheck(packing.pad, (packed,))


def test_little_padding_is_not_worth_it():
    assert Packing.if_worthwhile(torch.tensor([6, 6, 6, 5]), 6) is None
    assert Packing.if_worthwhile(None, 6) is None
    assert Packing.if_worthwhile(torch.tensor([6, 1]), 6) is not None
