from math import sqrt

import pytest
import torch

from regard.layers import (
    AdditiveAttention,
    MultiHeadAttention,
    Residual,
    SinusoidalPositions,
    TokenEmbedding,
    sinusoidal,
)

B, N, M = 2, 5, 7


def test_columns_change_ever_more_slowly_as_the_bits_of_a_number_do():
    numbers = torch.arange(8)
    bits = torch.stack([(numbers >> power) & 1 for power in range(3)], dim=1)
    assert bits.flip(1).tolist() == [[int(bit) for bit in f"{i:03b}"] for i in range(8)]
    assert bits.diff(dim=0).abs().sum(0).tolist() == [7, 3, 1]

    def turning_points(table):
        return table.diff(dim=0).sign().diff(dim=0).ne(0).sum(0).tolist()

    sines = turning_points(sinusoidal(torch.arange(1, 1000), 32, dtype=torch.float64)[:, ::2])
    assert sines == sorted(sines, reverse=True)
    assert sines[0] > 300 > sines[-1] == 0


def test_a_few_columns_distinguish_many_positions():
    table = sinusoidal(torch.arange(2000), 8, dtype=torch.float64)
    distance = torch.cdist(table, table) + torch.eye(2000, dtype=torch.float64)
    assert distance.min() > 1e-4


def test_embeddings_are_scaled_and_positions_are_not():
    model_dim = 512
    embedding = TokenEmbedding(50, model_dim)
    ids = torch.arange(1, 50)
    embedded = embedding(ids).detach()
    torch.testing.assert_close(embedded, embedding.weight[ids] * sqrt(model_dim))
    # A vector of the table has length one, so that scaled its components are of unit size, as
    # those of the positions are, which lie between -1 and 1.
    assert embedding.weight[1:].detach().norm(dim=-1).mean() == pytest.approx(1, abs=0.05)
    assert embedded.square().mean() == pytest.approx(1, abs=0.1)
    added = SinusoidalPositions(model_dim)(torch.zeros(1, 49, model_dim))
    torch.testing.assert_close(added[0], sinusoidal(torch.arange(49), model_dim))
    assert added.abs().max() <= 1
    states = torch.randn(3, model_dim)
    torch.testing.assert_close(embedding.logits(states), states @ embedding.weight.T)


@pytest.mark.parametrize("num_heads", [1, 4, 8])
def test_more_heads_are_narrower_and_cost_no_parameters(num_heads):
    C = 32
    count = sum(p.numel() for p in MultiHeadAttention(C, num_heads).parameters())
    assert count == 4 * (C * C + C)


def test_layer_norm_looks_at_one_position_at_a_time():
    layer = Residual(12)
    states = torch.randn(B, N, 12)
    other = states.clone()
    other[:, 1:] = 100 * torch.randn(B, N - 1, 12)
    out, changed = layer(states, torch.zeros_like), layer(other, torch.zeros_like)
    torch.testing.assert_close(out[:, 0], changed[:, 0])
    torch.testing.assert_close(out.mean(-1), torch.zeros(B, N), atol=1e-6, rtol=0)
    torch.testing.assert_close(out.std(-1, unbiased=False), torch.ones(B, N), atol=1e-4, rtol=0)


def test_additive_attention_scores_queries_and_keys_of_different_widths():
    layer = AdditiveAttention(query_dim=4, key_dim=6, hidden_dim=8).double()
    query, memory = torch.randn(B, N, 4).double(), torch.randn(B, M, 6).double()
    # Without its only bias, which starts at zero, this is v · tanh(W h + U s).
    hidden = (query @ layer.query.weight.T)[:, :, None] + (memory @ layer.key.weight.T)[:, None]
    shares = torch.softmax(hidden.tanh() @ layer.w, dim=-1)
    assert shares.shape == (B, N, M)
    torch.testing.assert_close(layer(query, layer.prepare(memory), memory), shares @ memory)
    alone = layer(query[:, 2], layer.prepare(memory), memory)
    torch.testing.assert_close(alone, (shares @ memory)[:, 2])
