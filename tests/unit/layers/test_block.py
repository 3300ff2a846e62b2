"""Layers one on the other: what they keep of a stream."""

import pytest
import torch

from regard.attention import causal
from regard.errors import SettingError
from regard.layers import BlockStack, TransformerBlock


@pytest.fixture
def stack():
    def block(layer):
        return TransformerBlock("decoder", layer, model_dim=8, num_heads=2, ffn_dim=16)

    return BlockStack(2, block).eval()


def test_a_stream_of_single_positions_sees_all_earlier_ones(stack):
    states = torch.randn(3, 5, 8)
    whole, _ = stack(states, mask=causal())
    past, cache, parts = stack.empty_caches(3), None, []
    for step in states.split(1, dim=1):
        part, past = stack(step, past=past)
        _, cache = stack[0](step, cache=cache)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    assert cache.length == 5


def test_a_stream_that_never_began_is_refused(stack):
    step = torch.randn(3, 1, 8)
    _, past = stack(step)
    with pytest.raises(
        SettingError, match=r"a cache for each of 2 layers; got 0\. Begin with empty_caches\(batch"
    ):
        stack(step, past=past)
