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
    compiled_model = copy.deepcopy(model)
    source, target = torch.randint(11, (2, 7)), torch.randint(13, (2, 5))
    compiled = torch.compile(compiled_model, backend="aot_eager", fullgraph=True)
    for lengths in (torch.tensor([7, 2]), torch.tensor([1, 4])):
        expected = model.project(model(source, lengths, target)[0])
        logits = compiled_model.project(compiled(source, lengths, target)[0])
        torch.testing.assert_close(logits, expected)
        logits.square().sum().backward()
        expected.square().sum().backward()
        for parameter, reference in zip(
            compiled_model.parameters(), model.parameters(), strict=True
        ):
            torch.testing.assert_close(parameter.grad, reference.grad, rtol=1e-4, atol=1e-4)
    calls = []
    with observe(calls.append):
        compiled(source, lengths, target)
    expected_calls = [("encoder", 0), ("encoder", 1)]
    expected_calls += [(kind, layer) for layer in (0, 1) for kind in ("decoder", "cross")]
    assert [(each.kind, each.layer) for each in calls] == expected_calls
