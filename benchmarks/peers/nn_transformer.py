"""The plain torch baseline: ``nn.Transformer`` as somebody who knows torch would write it, timed.

Run in a process of its own, ``python -m benchmarks.peers.nn_transformer BATCHES --updates 12``; it
prints one JSON line (see ``regard_speed``): the size in ``batches``, one embedding shared
three ways and scaled by √d, sinusoidal positions, post-norm, float masks, logits for tokens and
not for padding, ``F.cross_entropy`` with label smoothing 0.1, fused Adam. Embeddings, attention
weights and the outputs of sublayers are dropped as in regard; what regard has no dropout in, the
inside of a feed-forward layer, has none here.
"""

import json
import math
import statistics
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import measuring
from benchmarks.peers import batches

VOCAB_SIZE = measuring.sized(9712, 300)
SMOOTHING = 0.1


class PlainTransformer(nn.Module):
    """Scaled embedding, sinusoidal positions, ``nn.Transformer``, and a tied projection."""

    def __init__(self, max_length: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, batches.MODEL_DIM, padding_idx=batches.PAD)
        self.dropout = nn.Dropout(batches.DROPOUT)
        self.transformer = nn.Transformer(
            d_model=batches.MODEL_DIM,
            nhead=batches.NUM_HEADS,
            num_encoder_layers=batches.NUM_LAYERS,
            num_decoder_layers=batches.NUM_LAYERS,
            dim_feedforward=batches.FFN_DIM,
            dropout=batches.DROPOUT,
            batch_first=True,
        )
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout = nn.Identity()
        positions = sinusoids(max_length, batches.MODEL_DIM)
        self.register_buffer("positions", positions, persistent=False)
        nn.init.xavier_uniform_(self.embedding.weight)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Logits for every target position that is no padding, (R, V)."""
        source_pad, target_pad = float_padding(source), float_padding(target_in)
        causal = nn.Transformer.generate_square_subsequent_mask(target_in.shape[1])
        states = self.transformer(
            self.embed(source),
            self.embed(target_in),
            tgt_mask=causal,
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target_pad,
            memory_key_padding_mask=source_pad,
        )
        logits: Tensor = F.linear(states[target_in != batches.PAD], self.embedding.weight)
        return logits

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings plus positions: (B, N) to (B, N, C)."""
        assert isinstance(self.positions, Tensor)
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        embedded: Tensor = self.dropout(scaled + self.positions[: ids.shape[1]])
        return embedded


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
    return torch.zeros(ids.shape).masked_fill_(ids == batches.PAD, -torch.inf)


def tensors(batch: batches.IdBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Source, decoder input and labels of a batch, padded on the right."""
    source = [[*ids, batches.EOS] for ids in batch.source]
    target_in = [[batches.BOS, *ids] for ids in batch.target]
    labels = [[*ids, batches.EOS] for ids in batch.target]
    given = (torch.tensor(batches.padded(rows)) for rows in (source, target_in, labels))
    return tuple(given)  # type: ignore[return-value]


def measure(given: list[batches.IdBatch], *, warmup: int, precision: str) -> dict[str, float]:
    """Train on the batches in order and time all but the first ``warmup``."""
    torch.manual_seed(42)
    model = PlainTransformer().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=batches.RATE, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_factor)
    losses: list[float] = []
    start = time.perf_counter()
    for number, batch in enumerate(given):
        if number == warmup:
            start = time.perf_counter()
        source, target_in, labels = tensors(batch)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(source, target_in)
        right = labels[labels != batches.PAD]
        loss = F.cross_entropy(logits.float(), right, label_smoothing=SMOOTHING)
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - start
    timed = given[warmup:]
    return {
        "updates": len(timed),
        "tokens": sum(batch.target_tokens for batch in timed),
        "seconds": round(seconds, 4),
        "loss": round(statistics.fmean(losses[warmup:]), 4),
    }


def rate_factor(update: int) -> float:
    """Linear warm-up, then the inverse square root, as a fraction of the peak."""
    step = update + 1
    return min(step / batches.WARMUP, math.sqrt(batches.WARMUP / step))


def main() -> None:
    """Read the arguments, measure, and print the JSON line."""
    arguments = batches.parse_arguments(__doc__)
    torch.set_num_threads(arguments.threads)
    given = batches.read(arguments.batches)[: arguments.updates]
    print(json.dumps(measure(given, warmup=arguments.warmup, precision=arguments.precision)))


if __name__ == "__main__":
    main()
