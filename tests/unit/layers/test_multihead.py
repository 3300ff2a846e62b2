"""Multi-head attention: heads, memories, caches."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention import Cosine, Gaussian, alibi, attend, causal, lengths
from regard.attention.reference import attend_by_loops
from regard.errors import SettingError
from regard.layers.multihead import MultiHeadAttention


def by_formula(layer, states, memory, visible=None):
    """Heads cut out by slices, one after the other, mixed by plain loops."""
    if layer.query_key_value is not None:
        q, k, v = (
            F.linear(states, w, b)
            for w, b in zip(
                layer.query_key_value.weight.chunk(3),
                layer.query_key_value.bias.chunk(3),
                strict=True,
            )
        )
    else:
        q = layer.query(states)
        k, v = layer.key_value(memory).chunk(2, dim=-1)
    D = q.shape[-1] // layer.num_heads
    heads = [
        attend_by_loops(
            q[:, None, :, h * D : (h + 1) * D],
            k[:, None, :, h * D : (h + 1) * D],
            v[:, None, :, h * D : (h + 1) * D],
            visible=visible,
        ).context[:, 0]
        for h in range(layer.num_heads)
    ]
    return layer.output(torch.cat(heads, dim=-1))


def test_self_attention_is_the_paper_formula():
    layer, states = MultiHeadAttention(12, 3).double(), torch.randn(2, 5, 12).double()
    out, cache = layer(states, mask=causal())
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(out, by_formula(layer, states, states, visible))
    assert cache is None or cache.length == 5


def test_attention_over_a_memory_of_another_width():
    layer = MultiHeadAttention(12, 3, key_value_dim=7).double()
    states, memory = torch.randn(2, 5, 12).double(), torch.randn(2, 4, 7).double()
    out, _ = layer(states, memory)
    torch.testing.assert_close(out, by_formula(layer, states, memory))


def test_a_memory_projected_once_gives_the_same():
    layer = MultiHeadAttention(12, 3, key_value_dim=7).eval()
    states, memory = torch.randn(2, 5, 12), torch.randn(2, 4, 7)
    kept = layer.project_memory(memory)
    assert kept.key.shape == (2, 3, 4, 4)
    mask = lengths([2, 4])
    assert torch.equal(layer(states, kept, mask=mask)[0], layer(states, memory, mask=mask)[0])


def test_values_may_be_made_of_something_else():
    layer = MultiHeadAttention(12, 3, key_value_dim=7)
    memory, values = torch.randn(2, 4, 7), torch.randn(2, 4, 7)
    kept = layer.project_memory(memory, values)
    torch.testing.assert_close(kept.key, layer.project_memory(memory).key)
    torch.testing.assert_close(kept.value, layer.project_memory(values).value)


def test_all_projections_start_with_the_spread_of_one_xavier_matrix():
    torch.manual_seed(0)
    fused = MultiHeadAttention(256, 4)
    apart = MultiHeadAttention(256, 4, key_value_dim=256)
    bound = (6 / (4 * 256)) ** 0.5
    for weight in (fused.query_key_value.weight, apart.query.weight, apart.key_value.weight):
        assert weight.abs().max() <= bound
        assert weight.abs().max() > 0.99 * bound
    assert fused.output.weight.abs().max() > bound
    assert fused.query_key_value.bias.eq(0).all()


def test_dropout_is_for_training_only():
    layer, states = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(2, 5, 12)
    assert not torch.equal(layer(states)[0], layer(states)[0])
    layer.eval()
    assert torch.equal(layer(states)[0], layer(states)[0])


def test_a_dropped_head_says_nothing_to_a_query_and_the_others_make_up_for_it():
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3, head_dropout=0.5)
    layer.output = torch.nn.Identity()
    layer.output.weight = torch.nn.Parameter(torch.eye(12))
    states = torch.randn(2, 50, 12)
    whole = layer.eval()(states)[0].unflatten(-1, (3, 4))
    got = layer.train()(states)[0].unflatten(-1, (3, 4))
    is_dropped = got.eq(0).all(-1)
    torch.testing.assert_close(got, 2 * whole * ~is_dropped[..., None])
    assert 0.35 < is_dropped.float().mean() < 0.65
    assert is_dropped.any(1).all()
    assert not is_dropped.all(1).any()


def test_projections_may_go_without_biases():
    layer = MultiHeadAttention(12, 3, bias=False)
    assert all(name.endswith("weight") for name, _ in layer.named_parameters())
    layer(torch.randn(2, 5, 12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MultiHeadAttention(10, 3), "model_dim must be divisible by num_heads"),
        (lambda: MultiHeadAttention(12, 3, dropout=1.0), "dropout must be at least 0"),
        (
            lambda: MultiHeadAttention(12, 3)(torch.zeros(1, 2, 12), torch.zeros(1, 2, 12)),
            "got a layer without key_value_dim",
        ),
        (
            lambda: MultiHeadAttention(12, 3, key_value_dim=12)(torch.zeros(1, 2, 12)),
            "memory must be given",
        ),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(SettingError, match=message):
        call()


def test_a_cache_does_not_go_with_a_memory():
    layer, memory = MultiHeadAttention(12, 3, key_value_dim=12), torch.zeros(1, 2, 12)
    with pytest.raises(SettingError, match="cache must be left out"):
        layer(torch.zeros(1, 1, 12), memory, cache=layer.project_memory(memory))


@pytest.mark.parametrize("score", [Gaussian(2.0), Cosine(torch.tensor([[0.5], [1.0], [2.0]]))])
def test_any_score_may_match_the_heads_with_any_bias(score):
    layer = MultiHeadAttention(12, 3, score=score).double()
    states = torch.randn(2, 5, 12).double()
    q, k, v = (
        t.unflatten(-1, (3, 4)).transpose(1, 2) for t in layer.query_key_value(states).chunk(3, -1)
    )
    mixed = attend(q, k, v, score=score, bias=alibi(), mask=causal(), backend="tiled")
    want = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(states, bias=alibi(), mask=causal())[0], want)
