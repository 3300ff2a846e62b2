"""Patches against their formula in loops."""

import pytest
import torch

from regard.errors import SettingError
from regard.layers.patches import PatchEmbedding

B, P, C, PATCH = 2, 3, 5, 2
SIZE = (4, 6)


def test_a_state_is_a_linear_map_of_its_patch():
    embed = PatchEmbedding(C, size=SIZE, patch=PATCH, channels=P).double()
    torch.nn.init.normal_(embed.bias)
    pictures = torch.randn(B, P, *SIZE, dtype=torch.float64)
    expected = torch.zeros(B, 6, C, dtype=torch.float64)
    for place, (top, left) in enumerate((y, x) for y in (0, 2) for x in (0, 2, 4)):
        for b in range(B):
            for c in range(C):
                total = embed.bias[c].clone()
                for p in range(P):
                    for y in range(PATCH):
                        for x in range(PATCH):
                            weight = embed.weight[c, p, y, x]
                            total += weight * pictures[b, p, top + y, left + x]
                expected[b, place, c] = total
    torch.testing.assert_close(embed(pictures), expected)
    assert torch.autograd.gradcheck(embed, pictures[:1].requires_grad_())


@pytest.mark.parametrize("size", [(5, 6), (4, 7), (0, 2)])
def test_a_patch_divides_the_pictures(size: tuple[int, int]):
    with pytest.raises(SettingError, match=rf"patch must divide .* {size[0]} × {size[1]}; got 2"):
        PatchEmbedding(C, size=size, patch=2)
