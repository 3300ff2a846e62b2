"""regard's own side of the speed measurement, with the interface all sides share.

``python -m benchmarks.peers.regard_speed BATCHES --updates 12 --warmup 2 --threads 2`` trains
Transformer-tiny on the first batches of a batches file (``batches.py``
says what is in it) and prints one JSON line::

    {"updates": 10, "tokens": 18011, "seconds": 5.2, "loss": 7.71}

``updates``, ``tokens`` (target tokens and sentence ends, no padding) and ``seconds`` are of what
comes after the warm-up: padding the ids, forward, loss, backward and the optimizer. ``loss`` is
their mean training loss, smoothed, per token: it shows that the work was done.

The work is done by regard's own training loop, into a run folder that is thrown away. The ids of
regard's vocabularies have padding at 0 and unknown at 1, those of the file the other way round:
the two are swapped.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from benchmarks import measuring
from benchmarks.peers import batches
from regard.models import Transformer, TransformerConfig
from regard.runs import Run
from regard.tasks.sequences.encoded import SequenceBatch
from regard.tasks.sequences.sequence_task import SequenceTask
from regard.text import Corpus, Sequences, collate
from regard.training import Callback, OngoingTraining, Trainer, TrainingConfig, Update
from regard.training.distributed.world import BatchShard

VOCAB_SIZE = measuring.sized(9712, 300)


class GivenBatches:
    """The task of training on these batches, in this order."""

    metrics: ClassVar[Mapping[str, int]] = {"loss": -1}

    def __init__(self, given: list[batches.IdBatch]) -> None:
        self.given, self.model_dim = given, batches.MODEL_DIM
        self.num_samples = sum(len(batch.source) for batch in given)

    def begin_epoch(self, epoch: int) -> None:
        """Nothing: every epoch is the same."""

    def update_batches(
        self, epoch: int, cursor: int, shard: BatchShard, *, with_empty: bool
    ) -> Iterator[tuple[tuple[SequenceBatch], int]]:
        """Every batch, whole, an update each; padded as it is asked for."""
        for batch in self.given:
            corpus = Corpus(
                Sequences.of(map(swapped, batch.source)), Sequences.of(map(swapped, batch.target))
            )
            cursor += len(corpus)
            yield (SequenceBatch(collate(corpus, torch.arange(len(corpus)).numpy()), ()),), cursor

    backward = SequenceTask.backward  # needs nothing else of the task

    def validate(self, model: nn.Module) -> dict[str, float]:
        """No validation: it is not what is timed."""
        return {"loss": 0.0}

    def samples(self, model: nn.Module) -> list[str]:
        """None."""
        return []


class Stopwatch(Callback):
    """Notes when each update ended, and its loss."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.losses: list[float] = []
        self.tokens: list[int] = []

    def on_update(self, update: Update) -> None:
        """Note time and loss."""
        self.ends.append(time.perf_counter())
        self.losses.append(update.figures["loss"])
        self.tokens.append(update.tokens)


def swapped(ids: Sequence[int]) -> list[int]:
    """The ids of the file as regard numbers them."""
    return [1 - token if token < 2 else token for token in ids]


SIZE = TransformerConfig(
    model_dim=batches.MODEL_DIM,
    ffn_dim=batches.FFN_DIM,
    num_heads=batches.NUM_HEADS,
    num_encoder_layers=batches.NUM_LAYERS,
    num_decoder_layers=batches.NUM_LAYERS,
    dropout=batches.DROPOUT,
    attention_dropout=batches.DROPOUT,
)


def fit(given: list[batches.IdBatch], run: Run, *, precision: str) -> Stopwatch:
    """Train a model once on every batch, with the peers' schedule; how long it took."""
    config = TrainingConfig(
        updates=len(given),
        learning_rate=batches.RATE,
        warmup=batches.WARMUP,
        schedule="inverse_sqrt",
        validate_every=len(given),
        precision=precision,
        seed=42,
    )
    torch.manual_seed(42)
    vocab = {"source_vocab": VOCAB_SIZE, "target_vocab": VOCAB_SIZE, "shared_vocab": True}
    model, stopwatch = Transformer(SIZE, **vocab), Stopwatch()
    ongoing = OngoingTraining(run.path, None)  # type: ignore[arg-type]  # nothing asks its predictor
    Trainer(run, model, GivenBatches(given), config, stopwatch, ongoing).fit()
    return stopwatch


def summary(stopwatch: Stopwatch, *, warmup: int, began: float) -> dict[str, float]:
    """Updates, target tokens, seconds and mean loss after the warm-up."""
    start = stopwatch.ends[warmup - 1] if warmup else began
    return {
        "updates": len(stopwatch.ends) - warmup,
        "tokens": sum(stopwatch.tokens[warmup:]),
        "seconds": round(stopwatch.ends[-1] - start, 4),
        "loss": round(statistics.fmean(stopwatch.losses[warmup:]), 4),
    }


def main() -> None:
    """Read the arguments, measure, and print the JSON line."""
    arguments = batches.parse_arguments(__doc__)
    torch.set_num_threads(arguments.threads)
    given = batches.read(arguments.batches)[: arguments.updates]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with Run.create(Path(folder) / "run", {"task": "translation"}, "translation") as run:
            stopwatch = fit(given, run, precision=arguments.precision)
    print(json.dumps(summary(stopwatch, warmup=arguments.warmup, began=began)))


if __name__ == "__main__":
    main()
