"""The Vision Transformer: what it depends on, and that it learns."""

import pytest
import torch

from regard.attention import observe
from regard.models import VisionTransformer, VisionTransformerConfig

SMALL = {"model_dim": 16, "num_heads": 2, "num_layers": 2, "ffn_dim": 16, "dropout": 0.0}
SIZE, K = (4, 6), 3


def make_model(**settings):
    config = VisionTransformerConfig(**{**SMALL, **settings})
    return VisionTransformer(config, size=SIZE, channels=1, num_classes=K).eval()


@pytest.mark.parametrize(("pooling", "count"), [("first", 7), ("mean", 6)])
def test_every_patch_is_a_token_and_the_class_token_one_more(pooling, count):
    calls = []
    with observe(calls.append):
        make_model(pooling=pooling)(torch.randn(2, 1, *SIZE))
    assert [call.query.shape[-2] for call in calls] == [count, count]


def test_poolings_differ():
    torch.manual_seed(0)
    first = make_model(pooling="first")
    mean = make_model(pooling="mean")
    mean.load_state_dict(
        {
            name: weight[1:] if name == "positions.table" else weight
            for name, weight in first.state_dict().items()
            if name != "first"
        }
    )
    pictures = torch.randn(2, 1, *SIZE)
    assert not torch.allclose(first(pictures), mean(pictures), atol=1e-3)
