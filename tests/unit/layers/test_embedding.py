import pytest
import torch

from regard.errors import SettingError
from regard.layers import TokenEmbedding
from regard.layers.embedding import PatchEmbedding

V, C = 11, 7
# Of pictures: batch, channels, width of a state, side of a patch.
B, P, STATE, PATCH = 2, 3, 5, 2
SIZE = (4, 6)


def test_unscaled_vectors_are_the_rows():
    table = TokenEmbedding(V, C, scaled=False)
    ids = torch.tensor([4, 1])
    assert torch.equal(table(ids), table.weight[ids])


def test_logits_are_products_with_every_row_whether_scaled_or_not():
    states = torch.randn(2, 3, C)
    for scaled in (True, False):
        table = TokenEmbedding(V, C, scaled=scaled)
        expected = torch.einsum("btc,vc->btv", states, table.weight)
        torch.testing.assert_close(table.logits(states), expected)


def test_padding_begins_as_zeros_and_learns_nothing_from_being_read():
    table = TokenEmbedding(V, C, pad_id=2)
    ids = torch.tensor([2, 3])
    assert not table(ids)[0].any()
    table(ids).sum().backward()
    assert not table.weight.grad[2].any()
    assert table.weight.grad[3].all()


def test_a_state_is_a_linear_map_of_its_patch():
    embed = PatchEmbedding(STATE, size=SIZE, patch=PATCH, channels=P).double()
    torch.nn.init.normal_(embed.bias)
    pictures = torch.randn(B, P, *SIZE, dtype=torch.float64)
    states = embed(pictures)
    for index, (top, left) in enumerate((y, x) for y in (0, 2) for x in (0, 2, 4)):
        patch = pictures[:, None, :, top : top + PATCH, left : left + PATCH]  # (B, 1, P, Y, X)
        expected = (embed.weight * patch).sum((2, 3, 4)) + embed.bias
        torch.testing.assert_close(states[:, index], expected)
    assert states.shape == (B, 6, STATE)
    assert torch.autograd.gradcheck(embed, pictures[:1].requires_grad_())


@pytest.mark.parametrize("size", [(5, 6), (4, 7), (0, 2)])
def test_a_patch_divides_the_pictures(size):
    with pytest.raises(SettingError, match=rf"patch must divide .* {size[0]} × {size[1]}; got 2"):
        PatchEmbedding(STATE, size=size, patch=2)
