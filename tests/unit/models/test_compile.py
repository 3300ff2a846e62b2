"""Models inside ``torch.compile``: one graph, the numbers of eager calls."""

import copy

import pytest
import torch

from regard.attention import observe
from regard.models import Transformer, TransformerConfig

pytestmark = pytest.mark.slow

CONFIG = TransformerConfig(
    model_dim=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, ffn_dim=8, dropout=0.0
)


@pytest.fixture(autouse=True)
def _without_graphs_of_before(as_users_have_it):
    torch._dynamo.reset()


def test_a_transformer_is_one_graph_with_the_same_gradients_and_observers():
    model = Transformer(CONFIG, source_vocab=11, target_vocab=13)
    other = copy.deepcopy(model)
    source, target = torch.randint(11, (2, 7)), torch.randint(13, (2, 5))
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    for lengths in (torch.tensor([7, 2]), torch.tensor([1, 4])):
        want = model.project(model(source, lengths, target)[0])
        got = other.project(compiled(source, lengths, target)[0])
        torch.testing.assert_close(got, want)
        got.square().sum().backward()
        want.square().sum().backward()
        for one, two in zip(other.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-4)
    seen = []
    with observe(seen.append):
        compiled(source, lengths, target)
    places = [("encoder", 0), ("encoder", 1)]
    places += [(kind, layer) for layer in (0, 1) for kind in ("decoder", "cross")]
    assert [(each.kind, each.layer) for each in seen] == places
