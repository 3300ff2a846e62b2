"""The Transformer from nothing but torch, trained on the phrasebook beside the library's own.

    python examples/experiments/from_scratch.py [--updates 600] [--seeds 3]

From each seed both begin with the same parameters and see the same batches, without dropout.
Chapter 8 of the course goes through the model line by line.
"""

import argparse
import re
from statistics import mean, stdev

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Multi-head attention."""

    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def split(self, states):  # to batch, heads, positions, width of a head
        return states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, memory, visible):
        q = self.split(self.query(x))
        k, v = self.split(self.key(memory)), self.split(self.value(memory))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))  # heads concatenated


class FeedForward(nn.Module):
    """Two layers, at each position by itself."""

    def __init__(self, width, inner):
        super().__init__()
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.outer(F.relu(self.inner(x)))


class Residual(nn.Module):
    """A sum, and its layer norm."""

    def __init__(self, width, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, x, change):
        return self.norm(x + self.dropout(change))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, width, num_heads, inner, dropout):
        super().__init__()
        self.attend, self.feed = Attention(width, num_heads), FeedForward(width, inner)
        self.attend_residual = Residual(width, dropout)
        self.feed_residual = Residual(width, dropout)

    def forward(self, x, visible):
        x = self.attend_residual(x, self.attend(x, x, visible))
        return self.feed_residual(x, self.feed(x))


class DecoderLayer(EncoderLayer):
    """An encoder's layer with attention to the source between the two."""

    def __init__(self, width, num_heads, inner, dropout):
        super().__init__(width, num_heads, inner, dropout)
        self.cross_attend = Attention(width, num_heads)
        self.cross_attend_residual = Residual(width, dropout)

    def forward(self, x, visible, memory, memory_visible):
        x = self.attend_residual(x, self.attend(x, x, visible))
        x = self.cross_attend_residual(x, self.cross_attend(x, memory, memory_visible))
        return self.feed_residual(x, self.feed(x))


def waves(length, width):
    """Return the encoding of positions: sines and cosines, one pair of columns a speed."""
    speed = 10000 ** (-torch.arange(0, width, 2) / width)
    angle = torch.arange(length)[:, None] * speed
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Transformer(nn.Module):
    """An encoder and a decoder, post-norm; id 0 is padding."""

    def __init__(self, source_vocab, target_vocab, width, num_heads, inner, num_layers, dropout):
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab, width)
        self.target_embedding = nn.Embedding(target_vocab, width)
        sizes = width, num_heads, inner, dropout
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(num_layers))
        self.dropout = nn.Dropout(dropout)

    def embed(self, table, ids):
        width = table.embedding_dim
        return self.dropout(table(ids) * width**0.5 + waves(ids.shape[1], width))

    def encode(self, source):
        states, is_word = self.embed(self.source_embedding, source), source != 0  # 0 is padding
        for layer in self.encoder:
            states = layer(states, is_word[:, None, None])
        return states, is_word[:, None, None]

    def decode(self, target, memory, memory_visible):
        states, length = self.embed(self.target_embedding, target), target.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        for layer in self.decoder:
            states = layer(states, causal, memory, memory_visible)
        return states @ self.target_embedding.weight.T  # one table for both

    def forward(self, source, target):
        return self.decode(target, *self.encode(source))


def from_library(parameters):
    """Yield the library's parameters by the names above."""
    for name, tensor in parameters:
        *path, part, kind = name.replace("look", "cross_attend").split(".")
        parts = part.split("_") if part.endswith("key_value") else [part]  # packed in one matrix
        for piece, values in zip(parts, tensor.chunk(len(parts)), strict=True):
            yield ".".join([*path, piece, kind]), values.detach().clone()


UNKNOWN, BEGIN, END = 1, 2, 3
# The 0.975 quantile of Student's t with 1, 2, … degrees of freedom.
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


def words(text):
    """Split English into words and marks."""
    return re.findall(r"[\w'’-]+|[^\w\s]", text)


def padded(rows):
    """Stack sequences of ids, zeros behind the shorter ones."""
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def train(logits_of, parameters, pairs, updates, seed, peak=0.003):
    """Train by Adam, whose rate rises to a peak and falls to zero; return the last loss.

    ``logits_of`` takes sources and the targets so far; the seed chooses the batches.
    """
    random, warmup = torch.Generator().manual_seed(seed), updates / 10
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, updates + 1):
        rising, falling = step / warmup, (updates - step) / (updates - warmup)
        optimizer.param_groups[0]["lr"] = peak * min(rising, falling)
        rows = torch.randint(len(pairs), (64,), generator=random)
        source, target = (padded(side) for side in zip(*(pairs[row] for row in rows), strict=True))
        logits = logits_of(source, target[:, :-1])
        loss = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=0, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def translate(logits_of, sources, longest=30):
    """Write the likeliest token again and again, until all have ended."""
    source = padded(sources)
    written = torch.full((len(sources), 1), BEGIN)
    while written.shape[1] <= longest and not (written == END).any(1).all():
        token = logits_of(source, written)[:, -1:].argmax(-1)
        written = torch.cat([written, token], dim=1)
    return [row[1 : row.index(END)] if END in row else row[1:] for row in written.tolist()]


def main(updates, seeds=3, num_test=500):
    """Train both from each seed, print the BLEU of each and by how much they differ."""
    from regard import models
    from regard.metrics import bleu
    from regard.text.phrasebook import phrases

    train_pairs, test = phrases("train"), phrases("test")[:num_test]
    special = ["padding", "unknown", "begin", "end"]
    characters = [*special, *sorted({each for pair in train_pairs for each in pair.source})]
    targets = [*special, *sorted({each for pair in train_pairs for each in words(pair.target)})]
    source_ids = {each: number for number, each in enumerate(characters)}
    target_ids = {each: number for number, each in enumerate(targets)}
    pairs = [
        (
            [source_ids[each] for each in pair.source],
            [BEGIN, *(target_ids[each] for each in words(pair.target)), END],
        )
        for pair in train_pairs
    ]
    sizes = {"model_dim": 128, "num_heads": 4, "ffn_dim": 256, "dropout": 0.0}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    config = models.TransformerConfig(**sizes, **layers)
    vocabularies = {"source_vocab": len(characters), "target_vocab": len(targets)}
    sources = [[source_ids.get(each, UNKNOWN) for each in pair.source] for pair in test]
    scores = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        library = models.Transformer(config, **vocabularies)
        scratch = Transformer(*vocabularies.values(), 128, 4, 256, 2, 0.0)
        scratch.load_state_dict(dict(from_library(library.named_parameters())))

        def by_library(source, target, model=library):
            states, _ = model(source, (source != 0).sum(1), target)
            return model.project(states)

        print(f"seed {seed}")
        scores.append([])
        for name, model, logits_of in (
            ("from scratch", scratch, scratch),
            ("the library's", library, by_library),
        ):
            loss = train(logits_of, model.parameters(), pairs, updates, seed)
            model.eval()
            outputs = [
                re.sub(r" (?=[^\w\s])", "", " ".join(targets[token] for token in row))
                for row in translate(logits_of, sources)
            ]
            score = bleu(outputs, [pair.references for pair in test]).value
            answers = zip(outputs, test, strict=True)
            right = sum(output in pair.references for output, pair in answers) / len(test)
            print(
                f"  {name:13}  loss {loss:.2f}, BLEU {score:.1f}, right {right:.0%}, "
                f"{test[0].source} → {outputs[0]}",
                flush=True,
            )
            scores[-1].append(score)
    scratch, library = zip(*scores, strict=True)
    print(f"mean BLEU  {mean(scratch):.1f} from scratch, {mean(library):.1f} the library's")
    if seeds > 1:
        differences = [one - other for one, other in scores]
        around = STUDENT[seeds - 2] * stdev(differences) / seeds**0.5
        print(f"difference {mean(differences):+.1f} ± {around:.1f} ({seeds} seeds, 95 %)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, len(STUDENT) + 2))
    main(**vars(parser.parse_args()))
