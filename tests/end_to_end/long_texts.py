"""Documents of long texts as trained models would give them: sinks, near heads, heads of topics."""

import numpy as np
import torch

from regard.attention.inspect.summary import Summary
from regard.viewer import Document, OneAttention, Text, example_of

SENTENCE = "the of attention a model 我们 看 words looks 模型 at מלים every الكلمات token in turn"
WORDS = SENTENCE.split()


def text_of_length(length):
    """So many tokens, some Chinese, Hebrew and Arabic among them."""
    chosen = np.random.default_rng(1).integers(0, len(WORDS), length)
    return Text.of([f"▁{WORDS[word]}" for word in chosen])


def long_document(length, *, layers=12, heads=12):
    """A decoder of this size that read a text of this length."""
    attention = [
        OneAttention("decoder", layer, tuple(range(heads)), summary(length, heads, layer))
        for layer in range(layers)
    ]
    return Document(
        title="A long text",
        task="language modelling",
        model=f"{layers} × {heads} heads",
        examples=(example_of(attention, text_of_length(length)),),
    )


def summary(length, heads, seed, *, top=8):
    """Of a causal layer whose heads share their weights among a sink, near keys and topics."""
    draw = np.random.default_rng(seed)
    sink, near, topic = draw.dirichlet((0.7, 0.7, 0.7), heads).T[:, :, None]
    position, width = np.arange(length), draw.uniform(1, 200, heads)[:, None]
    spread = near * np.log1p(np.minimum(width, position)) + topic * np.log1p(position)
    entropy = spread * 0.8 * np.exp(draw.normal(0, 0.08, (heads, length)))
    received = topic * draw.lognormal(0, 1.2, (heads, length)) / (position + 1) + near
    received[:, :1] += sink * length
    received *= length / received.sum(axis=1, keepdims=True)
    bucket = max(1, 1 << int(np.ceil(np.log2(length / 64))))
    count = -(-length // bucket)
    row, column = np.mgrid[:count, :count]
    distance = np.abs(row - column) * bucket / (width[:, :, None] + 1)
    tiles = topic[..., None] * draw.lognormal(0, 1, (heads, 1, count))
    tiles = (tiles + near[..., None] * 40 * np.exp(-distance)) * (column <= row)
    tiles[:, :, 0] += sink * count
    tiles *= bucket / tiles.sum(axis=-1, keepdims=True)
    back = (draw.exponential(1, (heads, length, top)) * width[..., None]).astype(int)
    is_first = draw.random((heads, length, top)) < sink[..., None]
    keys = np.where(is_first, 0, np.maximum(position[:, None] - back, 0))
    keys[:, :, 1:][keys[:, :, 1:] == keys[:, :, :-1]] = -1
    weights = -np.sort(-draw.dirichlet(np.full(top + 2, 0.5), (heads, length))[..., :top])
    return Summary(
        lse=_tensor(entropy),
        entropy=_tensor(entropy),
        top_keys=torch.as_tensor(keys),
        top_weights=_tensor(np.where(keys < 0, 0, weights)),
        distance=_tensor(near * width + topic * position / 2 + sink * position),
        first=_tensor(np.broadcast_to(sink, (heads, length))),
        received=_tensor(received),
        pooled=_tensor(tiles),
        counts=torch.ones(heads, length, dtype=torch.bool),
        bucket=(bucket, bucket),
    )


def _tensor(array):
    return torch.tensor(array, dtype=torch.float32)
