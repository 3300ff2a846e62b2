"""The Transformer against torch's own, with the same weights."""

import pytest
import torch
from torch import nn

from regard.layers import sinusoidal
from regard.models import Transformer, TransformerConfig

pytestmark = pytest.mark.parity

B, S, T, C, H, F, V = 3, 5, 7, 12, 3, 17, 23
NUM_ENCODER, NUM_DECODER = 2, 3


def ours(norm, activation):
    config = TransformerConfig(
        model_dim=C,
        num_heads=H,
        ffn_dim=F,
        num_encoder_layers=NUM_ENCODER,
        num_decoder_layers=NUM_DECODER,
        norm=norm,
        activation=activation,
    )
    model = Transformer(config, source_vocab=V, target_vocab=V, shared_vocab=True)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def theirs(norm, activation):
    options = {"norm_first": norm == "pre", "activation": activation, "batch_first": True}
    options |= {"dropout": 0.0, "dtype": torch.float64}

    def final():
        return nn.LayerNorm(C, dtype=torch.float64) if norm == "pre" else None

    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(C, H, F, **options),
        NUM_ENCODER,
        norm=final(),
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(C, H, F, **options), NUM_DECODER, norm=final()
    )
    return nn.Transformer(
        C, H, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    ).double()


def copy(target, source):
    target.weight.data, target.bias.data = source.weight.data, source.bias.data


def copy_attention(peer, layer):
    if layer.query_key_value is not None:
        weight, bias = layer.query_key_value.weight, layer.query_key_value.bias
    else:
        parts = (layer.query, layer.key_value)
        weight, bias = (torch.cat([getattr(p, n).data for p in parts]) for n in ("weight", "bias"))
    peer.in_proj_weight.data, peer.in_proj_bias.data = weight.data, bias.data
    copy(peer.out_proj, layer.output)


def copy_weights(peer, model):
    layers, blocks = [*peer.encoder.layers, *peer.decoder.layers], [*model.encoder, *model.decoder]
    for layer, mine in zip(layers, blocks, strict=True):
        copy_attention(layer.self_attn, mine.attend)
        copy(layer.norm1, mine.attend_residual.norm)
        copy(layer.linear1, mine.feed.inner)
        copy(layer.linear2, mine.feed.outer)
        if mine.cross_attend is not None:
            copy_attention(layer.multihead_attn, mine.cross_attend)
            copy(layer.norm2, mine.cross_attend_residual.norm)
        copy(layer.norm2 if mine.cross_attend is None else layer.norm3, mine.feed_residual.norm)
    if peer.encoder.norm is not None:
        copy(peer.encoder.norm, model.encoder_norm)
        copy(peer.decoder.norm, model.decoder_norm)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_transformer_is_torchs_with_the_same_weights(norm, activation):
    model, peer = ours(norm, activation), theirs(norm, activation)
    copy_weights(peer, model)
    source, target = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    source_lengths = torch.tensor([5, 2, 3])
    states, auxiliary = model(source, source_lengths, target)

    def embed(ids):
        vectors = model.target_embedding.weight[ids] * C**0.5
        return vectors + sinusoidal(torch.arange(ids.shape[1]), C, dtype=torch.float64)

    hidden = torch.arange(S) >= source_lengths[:, None]  # torch's polarity: True is not seen
    expected = peer(
        embed(source),
        embed(target),
        tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    assert auxiliary is None
    torch.testing.assert_close(states, expected)
    logits = model.project(states)
    torch.testing.assert_close(logits, expected @ model.target_embedding.weight.T)
    direction = torch.randn_like(expected)
    (mine,) = torch.autograd.grad(states, model.target_embedding.weight, direction)
    (peers,) = torch.autograd.grad(expected, model.target_embedding.weight, direction)
    torch.testing.assert_close(mine, peers)
