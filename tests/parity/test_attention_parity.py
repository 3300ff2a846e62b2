"""Against torch's own attention, with its weights copied and its opposite polarity of masks."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from regard.attention import attend, causal, dense, lengths
from regard.errors import SettingError
from regard.layers.multihead import MultiHeadAttention

pytestmark = pytest.mark.parity

BACKENDS = ["short", "sdpa", "dot_cpu", "tiled"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_scaled_dot_product_attention_and_its_gradients(backend, is_causal):
    inputs = [torch.randn(4, 8, 40, 32, requires_grad=True) for _ in range(3)]
    want = F.scaled_dot_product_attention(*inputs, is_causal=is_causal)
    mask = causal() if is_causal else None
    out = attend(*inputs, mask=mask, backend=backend)
    torch.testing.assert_close(out, want, atol=1e-5, rtol=0)
    grad = torch.randn_like(out)
    for ours, theirs in zip(
        torch.autograd.grad(out, inputs, grad), torch.autograd.grad(want, inputs, grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("backend", ["sdpa", "dot_cpu", "tiled"])
def test_masks_biases_and_groups_of_scaled_dot_product_attention(backend):
    query, key = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11)
    seen, bias = torch.rand(2, 1, 5, 7) > 0.3, torch.randn(6, 5, 7)
    want = F.scaled_dot_product_attention(query, key, key, attn_mask=seen, enable_gqa=True)
    out = attend(query, key, mask=seen, backend=backend)
    torch.testing.assert_close(out, want, atol=1e-5, rtol=0)
    want = F.scaled_dot_product_attention(query, key, key, attn_mask=bias, enable_gqa=True)
    torch.testing.assert_close(
        attend(query, key, bias=bias, backend=backend), want, atol=1e-5, rtol=0
    )


def copy_from(peer, layer):
    """The weights of torch's layer in ours."""
    with torch.no_grad():
        if layer.query_key_value is not None:
            layer.query_key_value.weight.copy_(peer.in_proj_weight)
            layer.query_key_value.bias.copy_(peer.in_proj_bias)
        else:
            layer.query.weight.copy_(peer.q_proj_weight)
            layer.key_value.weight.copy_(torch.cat([peer.k_proj_weight, peer.v_proj_weight]))
            layer.query.bias.copy_(peer.in_proj_bias[:12])
            layer.key_value.bias.copy_(peer.in_proj_bias[12:])
        layer.output.weight.copy_(peer.out_proj.weight)
        layer.output.bias.copy_(peer.out_proj.bias)


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_over_its_own_states(need_weights):
    peer, layer = nn.MultiheadAttention(12, 3, batch_first=True), MultiHeadAttention(12, 3)
    nn.init.normal_(peer.in_proj_bias)
    copy_from(peer, layer)
    states, n = torch.randn(2, 7, 12), torch.tensor([4, 7])
    padding = torch.arange(7) >= n[:, None]
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    want, _ = peer(
        states,
        states,
        states,
        key_padding_mask=padding,
        attn_mask=future,
        need_weights=need_weights,
    )
    out, _ = layer(states, mask=lengths(n) & causal())
    torch.testing.assert_close(out, want, atol=1e-5, rtol=0)
    out, _ = layer(states, mask=dense(~padding[:, None, None]) & dense(~future))
    torch.testing.assert_close(out, want, atol=1e-5, rtol=0)


def test_multihead_attention_over_a_memory():
    peer = nn.MultiheadAttention(12, 3, kdim=7, vdim=7, batch_first=True)
    layer = MultiHeadAttention(12, 3, key_value_dim=7)
    nn.init.normal_(peer.in_proj_bias)
    copy_from(peer, layer)
    states, memory = torch.randn(2, 5, 12), torch.randn(2, 4, 7)
    want, _ = peer(states, memory, memory)
    torch.testing.assert_close(layer(states, memory)[0], want, atol=1e-5, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_made_from_torchs_gives_its_numbers(bias):
    peer = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dropout=0.2).double().eval()
    layer = MultiHeadAttention.from_torch(peer)
    assert not layer.training
    assert layer.dropout == 0.2
    states = torch.randn(2, 7, 12).double()
    want, _ = peer(states, states, states, need_weights=False)
    torch.testing.assert_close(layer(states)[0], want)


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_what_no_layer_of_ours_can_be_made_from_is_refused(options):
    with pytest.raises(SettingError, match="peer must look at its inputs and nothing else"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 3, **options))
