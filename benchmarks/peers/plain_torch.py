"""Plain torch baselines, as somebody who knows torch would write them, timed.

Run in a process of its own, ``python -m benchmarks.peers.plain_torch BATCHES --updates 12``; it
prints one JSON line (see ``regard_speed``). Sizes are those in ``batches``, dropout is that of
regard, losses are of what is no padding, Adam is fused. ``--model`` is

- ``transformer``: ``nn.Transformer``, one embedding shared three ways and scaled by √d, sinusoidal
  positions, post-norm, float masks, label smoothing 0.1. What regard has no dropout in, the inside
  of a feed-forward layer, has none here.
- ``rnn``: an ``nn.GRU`` of both directions on packed sentences, and a decoder that takes step after
  step, each with additive attention as d2l.ai writes it (keys are projected at every step),
  ``nn.GRUCell`` and maxout.
- ``classifier``: ``nn.TransformerEncoder``, the mean of its states, a linear layer.
- ``tagger``: an ``nn.LSTM`` of both directions on packed sentences, a linear layer.
"""

import json
import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.peers import batches
from benchmarks.peers.batches import BOS, DROPOUT, EOS, MODEL_DIM, PAD, VOCAB_SIZE, WIDTH


class Plain(nn.Module, ABC):
    """A model: logits of a batch beside the numbers that are right."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, width, padding_idx=PAD)
        self.dropout = nn.Dropout(DROPOUT)

    @abstractmethod
    def forward(self, batch: batches.IdBatch) -> tuple[Tensor, Tensor]:
        """Logits, (R, V), and labels, (R,)."""


class PlainTransformer(Plain):
    """Scaled embedding, sinusoidal positions, ``nn.Transformer``, and a tied projection."""

    def __init__(self) -> None:
        super().__init__(MODEL_DIM)
        self.transformer = nn.Transformer(
            d_model=MODEL_DIM,
            nhead=batches.NUM_HEADS,
            num_encoder_layers=batches.NUM_LAYERS,
            num_decoder_layers=batches.NUM_LAYERS,
            dim_feedforward=batches.FFN_DIM,
            dropout=DROPOUT,
            batch_first=True,
        )
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout = nn.Identity()
        self.positions = sinusoids(256, MODEL_DIM)
        nn.init.xavier_uniform_(self.embedding.weight)

    def forward(self, batch: batches.IdBatch) -> tuple[Tensor, Tensor]:
        source, target_in, labels = sequences(batch)
        source_pad, target_pad = float_padding(source), float_padding(target_in)
        states = self.transformer(
            self.embed(source),
            self.embed(target_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target_in.shape[1]),
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target_pad,
            memory_key_padding_mask=source_pad,
        )
        real = labels != PAD
        return F.linear(states[real], self.embedding.weight), labels[real]

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings plus positions: (B, N) to (B, N, C)."""
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        embedded: Tensor = self.dropout(scaled + self.positions[: ids.shape[1]])
        return embedded


class PlainRnn(Plain):
    """Bahdanau et al. (2015): of each step the formula, one step after the other."""

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self.target_embedding = nn.Embedding(VOCAB_SIZE, WIDTH, padding_idx=PAD)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.query, self.key = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH)
        self.w = nn.Linear(WIDTH, 1, bias=False)
        self.cell = nn.GRUCell(3 * WIDTH, WIDTH)
        self.readout = nn.Linear(4 * WIDTH, 2 * WIDTH)
        self.bias = nn.Parameter(torch.zeros(VOCAB_SIZE))

    def forward(self, batch: batches.IdBatch) -> tuple[Tensor, Tensor]:
        source, target_in, labels = sequences(batch)
        memory, last = read(self.encoder, self.dropout(self.embedding(source)), source)
        is_pad, state = source == PAD, torch.tanh(self.first(last[1]))
        embedded = self.dropout(self.target_embedding(target_in))
        read_out = []
        for inputs in embedded.unbind(1):
            hidden = torch.tanh(self.query(state).unsqueeze(1) + self.key(memory))
            scores = self.w(hidden).squeeze(-1)
            weights = scores.masked_fill(is_pad, -torch.inf).softmax(-1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            state = self.cell(torch.cat([inputs, context], -1), state)
            read_out.append(self.readout(torch.cat([state, inputs, context], -1)))
        states = torch.stack(read_out, 1).unflatten(-1, (-1, 2)).amax(-1)
        real = labels != PAD
        logits = F.linear(self.dropout(states)[real], self.target_embedding.weight, self.bias)
        return logits, labels[real]


class PlainClassifier(Plain):
    """Embeddings and learned positions under a norm, ``nn.TransformerEncoder``, the mean."""

    def __init__(self) -> None:
        super().__init__(MODEL_DIM)
        self.positions = nn.Parameter(torch.randn(512, MODEL_DIM) * MODEL_DIM**-0.5)
        self.norm = nn.LayerNorm(MODEL_DIM)
        layer = nn.TransformerEncoderLayer(
            *(MODEL_DIM, batches.NUM_HEADS, batches.FFN_DIM, DROPOUT),
            activation="gelu",
            batch_first=True,
        )
        layer.dropout = nn.Identity()
        self.encoder = nn.TransformerEncoder(layer, batches.NUM_LAYERS)
        self.output = nn.Linear(MODEL_DIM, batches.NUM_CLASSES)

    def forward(self, batch: batches.IdBatch) -> tuple[Tensor, Tensor]:
        ids = padded([[*row, EOS] for row in batch.source])
        embedded = self.norm(self.embedding(ids) + self.positions[: ids.shape[1]])
        states = self.encoder(self.dropout(embedded), src_key_padding_mask=ids == PAD)
        real = (ids != PAD).unsqueeze(-1)
        pooled = (states * real).sum(1) / real.sum(1)
        return self.output(self.dropout(pooled)), torch.tensor(batch.classes)


class PlainTagger(Plain):
    """Embeddings, ``nn.LSTM`` in both directions, a linear layer."""

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * WIDTH, batches.NUM_TAGS)

    def forward(self, batch: batches.IdBatch) -> tuple[Tensor, Tensor]:
        ids, tags = padded(batch.source), padded(batch.tags)
        states, _ = read(self.encoder, self.dropout(self.embedding(ids)), ids)
        real = ids != PAD
        return self.output(self.dropout(states))[real], tags[real]


MODELS: dict[str, type[Plain]] = {
    "transformer": PlainTransformer,
    "rnn": PlainRnn,
    "classifier": PlainClassifier,
    "tagger": PlainTagger,
}


def read(recurrence: nn.RNNBase, inputs: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs of packed sentences, and the last states."""
    lengths = (ids != PAD).sum(1).cpu()
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, last = recurrence(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=ids.shape[1])
    return states, last


def sinusoids(length: int, model_dim: int) -> Tensor:
    """Sines in the even columns and cosines in the odd ones: (length, C)."""
    place = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, model_dim, 2) * (-math.log(10000.0) / model_dim))
    table = torch.zeros(length, model_dim)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)
    return table


def float_padding(ids: Tensor) -> Tensor:
    """Minus infinity at padding, zero elsewhere: (B, N)."""
    return torch.zeros(ids.shape).masked_fill_(ids == PAD, -torch.inf)


def padded(rows: Sequence[list[int]]) -> Tensor:
    """Rows filled up on the right: (B, N)."""
    return torch.tensor(batches.padded(rows))


def sequences(batch: batches.IdBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Source, decoder input and labels of a batch."""
    return (
        padded([[*ids, EOS] for ids in batch.source]),
        padded([[BOS, *ids] for ids in batch.target]),
        padded([[*ids, EOS] for ids in batch.target]),
    )


def measure(
    name: str, given: list[batches.IdBatch], *, warmup: int, precision: str, device: str
) -> dict[str, float]:
    """Train on the batches in order and time all but the first ``warmup``."""
    torch.set_default_device(device)
    torch.manual_seed(42)
    model = MODELS[name]().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=batches.RATE, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_factor)
    losses: list[float] = []
    start = time.perf_counter()
    for number, batch in enumerate(given):
        if number == warmup:
            start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            logits, labels = model(batch)
        loss = F.cross_entropy(logits.float(), labels, label_smoothing=batches.MODELS[name])
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - start
    return {
        "updates": len(given) - warmup,
        "tokens": sum(batch.tokens(name) for batch in given[warmup:]),
        "seconds": round(seconds, 4),
        "loss": round(statistics.fmean(losses[warmup:]), 4),
    }


def rate_factor(update: int) -> float:
    """Linear warm-up, then the inverse square root, as a fraction of the peak."""
    step = update + 1
    return min(step / batches.WARMUP, math.sqrt(batches.WARMUP / step))


def main() -> None:
    """Read the arguments, measure, and print the JSON line."""
    given, options = batches.parse_arguments(__doc__)
    torch.set_num_threads(options.threads)
    taken = measure(
        options.model,
        given,
        warmup=options.warmup,
        precision=options.precision,
        device=options.device,
    )
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
