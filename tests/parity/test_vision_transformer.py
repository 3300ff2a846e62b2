"""The Vision Transformer against Hugging Face's, with the same weights."""

import pytest
import torch
from torch import nn

from regard.models import VisionTransformer, VisionTransformerConfig

pytestmark = [pytest.mark.parity, pytest.mark.slow]

C, H, F, LAYERS, K, P, SIDE, PATCH = 12, 3, 17, 2, 5, 3, 6, 2


def theirs():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=C,
        num_attention_heads=H,
        num_hidden_layers=LAYERS,
        intermediate_size=F,
        image_size=SIDE,
        patch_size=PATCH,
        num_channels=P,
        num_labels=K,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    model = transformers.ViTForImageClassification(config).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def copied(peer):
    config = VisionTransformerConfig(
        patch=PATCH, model_dim=C, num_heads=H, num_layers=LAYERS, ffn_dim=F, dropout=0.0
    )
    model = VisionTransformer(config, size=(SIDE, SIDE), channels=P, num_classes=K).double()
    tensors = peer.state_dict()

    def found(kind):
        return [each for each in peer.modules() if isinstance(each, kind)]

    def fill(target, *sources):
        for part in ("weight", "bias"):
            rows = [getattr(each, part).data for each in sources]
            getattr(target, part).data = torch.cat(rows).clone()

    linear, norms = found(nn.Linear), found(nn.LayerNorm)
    fill(model.patches, *found(nn.Conv2d))
    model.first.data = tensors["vit.embeddings.cls_token"].flatten().clone()
    model.positions.table.data = tensors["vit.embeddings.position_embeddings"][0].clone()
    for number, block in enumerate(model.layers):
        query, key, value, output, wide, narrow = linear[6 * number :][:6]
        fill(block.attend.query_key_value, query, key, value)
        fill(block.attend.output, output)
        first, last = (m for m in block.feed.modules() if isinstance(m, nn.Linear))
        fill(first, wide)
        fill(last, narrow)
        fill(block.attend_residual.norm, norms[2 * number])
        fill(block.feed_residual.norm, norms[2 * number + 1])
    fill(model.norm, norms[-1])
    fill(model.output, linear[-1])
    return model.eval()


def test_logits_are_those_of_hugging_face():
    peer = theirs()
    pictures = torch.randn(2, P, SIDE, SIDE, dtype=torch.float64)
    expected = peer(pictures).logits
    torch.testing.assert_close(copied(peer)(pictures), expected, rtol=0, atol=1e-10)
