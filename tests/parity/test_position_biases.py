"""Position biases against those of Hugging Face's T5 and Bloom."""

import pytest
import torch
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from regard.attention import alibi, attend, causal, relative, weights

pytestmark = [pytest.mark.parity, pytest.mark.slow]


def t5_layer(heads, buckets, farthest, *, is_decoder):
    config = T5Config(
        d_model=8 * heads,
        d_kv=8,
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=farthest,
        is_decoder=is_decoder,
        dropout_rate=0.0,
    )
    layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    torch.nn.init.normal_(layer.relative_attention_bias.weight)
    return layer


@pytest.mark.parametrize("is_decoder", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (64, 300)])
@pytest.mark.parametrize("past", [0, 13])
def test_relative_is_t5s_bias(is_decoder, buckets, farthest, past):
    layer = t5_layer(3, buckets, farthest, is_decoder=is_decoder)
    # Nothing but the bias: all queries are zero.
    query, key = torch.zeros(1, 3, 171, 4), torch.randn(1, 3, 401, 4)
    bias = layer.compute_bias(171, 401, past_seen_tokens=past)
    rule = relative(
        layer.relative_attention_bias.weight,
        is_bidirectional=not is_decoder,
        max_distance=farthest,
        first=past,
    )
    torch.testing.assert_close(weights(query, key, bias=rule), bias.softmax(-1))
    torch.testing.assert_close(attend(query, key, bias=rule), bias.softmax(-1) @ key)


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 16, 31])
def test_alibi_is_blooms_bias(heads):
    # Bloom adds slope · place, which differs from −slope · distance by a number for each query.
    bias = build_alibi_tensor(torch.ones(1, 23), heads, torch.float32).view(1, heads, 1, 23)
    query, key = torch.randn(1, heads, 23, 4), torch.randn(1, heads, 23, 4)
    rows = weights(query, key, bias=alibi(), mask=causal())
    torch.testing.assert_close(rows, weights(query, key, bias=bias, mask=causal()))
    out = attend(query, key, bias=alibi(), mask=causal())
    torch.testing.assert_close(out, attend(query, key, bias=bias, mask=causal()))
