"""Projections cut into heads, and batches packed without their padding."""

import pytest
import torch
from torch.autograd import gradcheck

from regard.devices.finding import multiplies_in_tiles
from regard.layers.heads import Packing, cut

PARTS = ((6, 2), (3, 2), (3, 5))  # 12 + 6 + 15 wide


def by_slices(projected):
    """Head after head, column after column."""
    heads, start = [], 0
    for count, width in PARTS:
        columns = [projected[..., start + h * width :][..., :width] for h in range(count)]
        heads.append(torch.stack(columns, dim=1))
        start += count * width
    return heads


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_each_part_has_its_columns(dtype, requires_grad):
    projected = torch.randn(2, 5, 33).to(dtype).requires_grad_(requires_grad)
    for part, want in zip(cut(projected, PARTS), by_slices(projected), strict=True):
        stays = dtype != torch.bfloat16 or (multiplies_in_tiles() and not requires_grad)
        assert part.dtype == (dtype if stays else torch.float32)
        assert part.requires_grad == requires_grad
        assert torch.equal(part, want.to(part.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_return_to_their_columns(dtype):
    projected = torch.randn(2, 5, 33).to(dtype).requires_grad_()
    sizes = [(2, count, 5, width) for count, width in PARTS]
    # Strided as an attention kernel gives them, and one that does not come at all.
    grads = [torch.randn(B, N, H, D).transpose(1, 2) for B, H, N, D in sizes[:2]]
    query, key, _ = cut(projected, PARTS)
    loss = (query * grads[0]).sum() + (key * grads[1]).sum()
    (got,) = torch.autograd.grad(loss, projected)
    want = torch.cat([grad.transpose(1, 2).flatten(2) for grad in grads], dim=-1).to(dtype)
    assert got.dtype == dtype
    assert torch.equal(got[..., :18], want)
    assert got[..., 18:].eq(0).all()


def test_the_gradient_can_be_differentiated():
    projected = torch.randn(2, 3, 33, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda t: [part**3 for part in cut(t, PARTS)], projected, atol=1e-6
    )


def test_it_may_be_mapped_over_a_batch():
    weights, inputs = torch.randn(33, 4), torch.randn(7, 1, 5, 4)

    def loss(weights, states):
        return sum(part.square().sum() for part in cut(states @ weights.T, PARTS)) / 2

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, inputs)
    for grad, states in zip(each, inputs, strict=True):
        torch.testing.assert_close(grad, weights @ states[0].T @ states[0])


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
