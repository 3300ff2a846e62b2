"""Lines of "coming from" for d2l and Keras: each call here computes what the layer there does."""

import math
import re
from pathlib import Path

import pytest
import torch

import regard

DOCS = Path(__file__).parents[3] / "docs"
B, N, M, D, E, H, C = 2, 3, 7, 5, 11, 2, 6


def calls(page, section):
    """The calls here that a section's table has, each by the beginning of what stands there."""
    text = (DOCS / page).read_text("utf-8")
    (table,) = re.findall(rf"^## {section}.*?\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    return {
        re.findall("`([^`]+)`", there)[0]: re.findall("`([^`]+)`", here) for there, here in rows
    }


def inputs(seed=0):
    draw = torch.Generator().manual_seed(seed)
    sizes = {"queries": (B, N, D), "keys": (B, M, D), "values": (B, M, E), "X": (B, M, C)}
    made = {
        name: torch.randn(size, generator=draw, dtype=torch.float64) for name, size in sizes.items()
    }
    return {**made, "valid_lens": torch.tensor([4, 7])}


def softmax_loop(scores, lengths=None):
    """The softmax of each row over its first keys, in plain loops."""
    out = torch.zeros_like(scores)
    for index in range(scores.numel() // scores.shape[-1]):
        row = scores.reshape(-1, scores.shape[-1])[index]
        batch = index // (scores[0].numel() // scores.shape[-1])
        seen = len(row) if lengths is None else int(lengths[batch])
        powers = [math.exp(float(score)) for score in row[:seen]]
        for key, power in enumerate(powers):
            out.reshape(-1, scores.shape[-1])[index, key] = power / sum(powers)
    return out


def multi_head(layer, x, lengths=None):
    """Multi-head self-attention by the parameters of a layer."""
    parts = layer.query_key_value(x).chunk(3, dim=-1)
    query, key, value = (part.unflatten(-1, (H, C // H)).transpose(1, 2) for part in parts)
    weights = softmax_loop((query @ key.mT / math.sqrt(C // H)).detach(), lengths)
    return layer.output((weights @ value).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("page", ["coming-from.md", "coming-from.zh.md"])
def test_calls_of_d2l_are_the_formulas_of_its_layers(page):
    table, names = calls(page, "d2l"), inputs()
    q, k, v, X, lengths = (names[name] for name in ("queries", "keys", "values", "X", "valid_lens"))
    scope = {"regard": regard, "torch": torch, **names}

    def here(there, which=0):
        (found,) = (expressions for name, expressions in table.items() if name.startswith(there))
        return eval(found[which], scope)

    scores = q @ k.mT / math.sqrt(D)
    weights = softmax_loop(scores, lengths)
    scope["X"] = scores
    assert torch.allclose(here("masked_softmax"), weights)
    scope["valid_lens"] = torch.tensor([[1, 3, 7], [2, 5, 4]])  # a length for each query
    rows = [
        [softmax_loop(scores[b : b + 1, i : i + 1], [length]) for i, length in enumerate(each)]
        for b, each in enumerate(scope["valid_lens"].tolist())
    ]
    assert torch.allclose(here("masked_softmax"), torch.cat([torch.cat(r, 1) for r in rows]))
    scope["valid_lens"] = lengths
    scope["X"] = X
    assert torch.allclose(here("DotProductAttention"), weights @ v)
    assert torch.allclose(here("attention.attention_weights"), weights)

    scope |= {"query_dim": D, "key_dim": D, "num_hiddens": C, "num_heads": H, "n": M}
    call = "AdditiveAttention(num_hiddens, dropout)(queries, keys, values, valid_lens)"
    exec(table[call][1], scope)
    layer = scope["additive"].double()
    assert here("AdditiveAttention").shape == (B, N, E)
    hidden = torch.zeros(B, N, M, dtype=torch.float64)
    keys = layer.prepare(k)
    (projection,) = (p for name, p in layer.named_parameters() if "query" in name and p.dim() == 2)
    (w,) = (p for name, p in layer.named_parameters() if "key" not in name and "query" not in name)
    for b in range(B):
        for i in range(N):
            for j in range(M):
                feature = torch.tanh(projection @ q[b, i] + keys[b, j])
                hidden[b, i, j] = w.flatten() @ feature
    expected = softmax_loop(hidden.detach(), lengths) @ v
    assert torch.allclose(here("AdditiveAttention"), expected)

    name = "MultiHeadAttention(num_hiddens, num_heads, dropout)(X, X, X, valid_lens)"
    exec(table[name][1], scope)
    layer = scope["multihead"].double()
    assert torch.allclose(here("MultiHeadAttention"), multi_head(layer, X, lengths))

    table_of_positions = here("PositionalEncoding")
    for position in range(M):
        for at in range(C // 2):
            angle = position / 10000 ** (2 * at / C)
            sine, cosine = table_of_positions[position, 2 * at : 2 * at + 2].tolist()
            assert (sine, cosine) == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-5)

    x, keys, w = q[..., :1], k[..., :1], 1.7
    scope |= {"x": x, "keys": keys, "values": v[..., :1], "w": w}
    kernel = softmax_loop(-(((x - keys.mT) * w) ** 2) / 2)
    assert torch.allclose(here("NWKernelRegression"), kernel @ v[..., :1])


@pytest.mark.parametrize("page", ["coming-from.md", "coming-from.zh.md"])
def test_calls_of_keras_are_the_formulas_of_its_layers(page):
    table, names = calls(page, "Keras"), inputs()
    q, k, v = names["queries"], names["keys"], names["values"]
    scale = torch.randn(D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    scope = {"regard": regard, "query": q, "key": k, "value": v, "scale": scale}
    scope |= {"valid_lens": names["valid_lens"]}

    def here(there, **others):
        (found,) = (expressions for name, expressions in table.items() if name.startswith(there))
        return eval(found[0], {**scope, **others})

    dot = q @ k.mT
    assert torch.allclose(here("Attention()"), softmax_loop(dot) @ v)
    assert torch.allclose(here("return_attention_scores"), softmax_loop(dot))
    assert torch.allclose(here("mask=["), softmax_loop(dot, names["valid_lens"]) @ v)
    additive = (scale * torch.tanh(q[:, :, None] + k[:, None])).sum(-1)
    assert torch.allclose(here("AdditiveAttention"), softmax_loop(additive) @ v)
    square = q @ q.mT
    future = torch.ones(N, N, dtype=torch.bool).triu(1)
    causal = softmax_loop(square.masked_fill(future, -1e9)) @ v[:, :N]
    assert torch.allclose(here("use_causal_mask", key=q, value=v[:, :N]), causal)
    heads = [torch.randn(B, n, H, D, dtype=torch.float64) for n in (N, M, M)]
    query, key, value = (each.transpose(1, 2) for each in heads)
    expected = softmax_loop(query @ key.mT / math.sqrt(D)) @ value
    got = here("ops.dot_product_attention", query=heads[0], key=heads[1], value=heads[2])
    assert torch.allclose(got, expected.transpose(1, 2))
    x = names["X"].float()
    torch.manual_seed(0)
    got = here("MultiHeadAttention", model_dim=C, num_heads=H, x=x)
    torch.manual_seed(0)
    layer = regard.layers.MultiHeadAttention(C, H)
    assert torch.allclose(got, multi_head(layer, x), atol=1e-6)
    layer = here("GroupQueryAttention", model_dim=C, num_query_heads=H, num_key_value_heads=1)
    query, key, value = layer.query_key_value(x).split([C, C // H, C // H], dim=-1)
    grouped = []  # every query head looks at the one head of keys and values
    for query_head in query.chunk(H, dim=-1):
        weights = softmax_loop((query_head @ key.mT / math.sqrt(C // H)).detach())
        grouped.append(weights @ value)
    assert torch.allclose(layer(x)[0], layer.output(torch.cat(grouped, dim=-1)), atol=1e-6)
