"""The Vision Transformer: what it depends on, and that it learns."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import observe
from regard.models import VisionTransformer, VisionTransformerConfig

from .conftest import train

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


def test_it_learns_where_the_light_is():
    torch.manual_seed(0)
    model = make_model().train()
    labels = torch.arange(60) % K
    pictures = 0.3 * torch.randn(60, 1, *SIZE)
    for picture, label in zip(pictures, labels, strict=True):
        picture[:, :, 2 * label : 2 * label + 2] += 1
    train(model, lambda _: F.cross_entropy(model(pictures), labels), steps=60, lr=3e-3)
    assert (model(pictures).argmax(-1) == labels).float().mean() > 0.95
