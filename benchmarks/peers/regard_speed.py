"""regard's own side of the speed measurement, with the interface all sides share.

``python -m benchmarks.peers.regard_speed BATCHES --updates 12 --warmup 2 --threads 2`` trains a
model (``--model``) on the first batches of a batches file (``batches.py`` says what is in it) and
prints one JSON line::

    {"updates": 10, "tokens": 18011, "seconds": 5.2, "loss": 7.71}

``updates``, ``tokens`` and ``seconds`` are of what comes after the warm-up: padding the ids,
forward, loss, backward and the optimizer. Tokens are those of targets and their ends, or without
targets those of sources; padding never counts. ``loss`` is their mean training loss, per token or
text: it shows that the work was done.

The work is done by regard's own training loop, into a run folder that is thrown away. The ids of
regard's vocabularies have padding at 0 and unknown at 1, those of the file the other way round:
the two are swapped.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import nn

from benchmarks.peers import batches
from benchmarks.peers.batches import DROPOUT, MODEL_DIM, NUM_HEADS, VOCAB_SIZE, WIDTH
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig, Transformer, TransformerConfig
from regard.runs import Run
from regard.tasks import recipe_from_table
from regard.tasks.labels.classification import Classification
from regard.tasks.labels.tagging import Tagging
from regard.tasks.sequences.sequence_task import SequenceBatch, SequenceTask
from regard.text import EOS_ID, pad_pairs
from regard.training import Callback, OngoingTraining, TrainingConfig, Update
from regard.training.distributed.world import BatchShard
from regard.training.trainer import Trainer

TRANSFORMER = {"model_dim": MODEL_DIM, "ffn_dim": batches.FFN_DIM, "num_heads": NUM_HEADS}
TRANSFORMER |= {"dropout": DROPOUT, "attention_dropout": DROPOUT}


def make(name: str) -> tuple[Any, nn.Module]:
    """The task, as far as training asks for it, and its model with new weights."""
    vocab = {"source_vocab": VOCAB_SIZE, "target_vocab": VOCAB_SIZE, "shared_vocab": True}
    if name == "transformer":
        layers = dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), batches.NUM_LAYERS)
        return SequenceTask, Transformer(TransformerConfig(**TRANSFORMER, **layers), **vocab)
    if name == "rnn":
        widths = dict.fromkeys(("embed_dim", "hidden_dim", "attention_dim"), WIDTH)
        return SequenceTask, RnnSeq2Seq(RnnSeq2SeqConfig(dropout=DROPOUT, **widths), **vocab)
    table: dict[str, Any] = {"head": {"dropout": DROPOUT}}
    task: Any
    if name == "classifier":
        model = {**TRANSFORMER, "num_layers": batches.NUM_LAYERS, "num_segments": 0}
        table |= {"task": "classification", "tokenizer": {"type": "words"}}
        recipe = recipe_from_table({**table, "model": {"type": "transformer", **model}})
        labels = [str(number) for number in range(batches.NUM_CLASSES)]
        tokenizer = SimpleNamespace(vocab_size=VOCAB_SIZE)
        task = Classification(recipe, tokenizer, labels=labels, aspects=[])
    else:
        model = {"type": "recurrent", "embed_dim": WIDTH, "hidden_dim": WIDTH, "dropout": DROPOUT}
        recipe = recipe_from_table({**table, "task": "tagging", "model": model})
        words, tags = (list(map(str, range(n))) for n in (VOCAB_SIZE - 4, batches.NUM_TAGS))
        task = Tagging(recipe, None, words=words, parts=[], tags=tags, rare=[])
    return task, task.build_model()


class GivenBatches:
    """Training on these batches, in this order."""

    metrics: ClassVar[Mapping[str, int]] = {"loss": -1}
    model_dim = MODEL_DIM
    valid_size = None

    def __init__(self, name: str, task: Any, given: list[batches.IdBatch]) -> None:
        self.name, self.task, self.given = name, task, given
        self.num_samples = sum(len(batch.source) for batch in given)

    def begin_epoch(self, epoch: int) -> None:
        """Nothing: every epoch is the same."""

    def update_batches(
        self, epoch: int, cursor: int, shard: BatchShard, *, with_empty: bool
    ) -> Iterator[tuple[tuple[Any], int]]:
        """Every batch, whole, an update each; padded as it is asked for."""
        for batch in self.given:
            cursor += len(batch.source)
            yield (self.padded(batch),), cursor

    def padded(self, batch: batches.IdBatch) -> Any:
        """A batch as the model reads it."""
        rows = [swapped(ids) for ids in batch.source]
        if self.name == "classifier":
            pairs = zip(rows, batch.classes, strict=True)
            return self.task.collate(
                [{"ids": [*ids, EOS_ID], "aspect": 0, "label": label} for ids, label in pairs]
            )
        if self.name == "tagger":
            known = zip(rows, batch.tags, strict=True)
            return self.task.collate(
                [
                    {"words": (), "ids": ids, "tags": tags}
                    | {"rare": [False] * len(ids), "sizes": [1] * len(ids)}
                    for ids, tags in known
                ]
            )
        return SequenceBatch(pad_pairs(rows, [*map(swapped, batch.target)]), ())

    def backward(self, *inputs: Any, **options: Any) -> tuple[torch.Tensor, int]:
        """The task's, which for sequences needs nothing else of it."""
        is_sequence = self.task is SequenceTask
        step = partial(SequenceTask.backward, self) if is_sequence else self.task.backward
        return step(*inputs, **options)  # type: ignore[no-any-return]

    def validate(self, model: nn.Module, *, by_sample: bool = False) -> dict[str, float]:
        """No validation: it is not what is timed."""
        return {"loss": 0.0}

    def calibrate(self, model: nn.Module) -> None:
        """No temperature: no probabilities are asked for."""

    def beside_baselines(self, figures: object) -> None:
        """No baseline."""

    def samples(self, model: nn.Module) -> list[str]:
        """None."""
        return []


class Stopwatch(Callback):
    """Notes when each update ended, and its loss."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.losses: list[float] = []

    def on_update(self, update: Update) -> None:
        """Note time and loss."""
        self.ends.append(time.perf_counter())
        self.losses.append(update.figures["loss"])


def swapped(ids: Sequence[int]) -> list[int]:
    """The ids of the file as regard numbers them."""
    return [1 - token if token < 2 else token for token in ids]


def fit(
    name: str, given: list[batches.IdBatch], run: Run, *, precision: str, device: str
) -> Stopwatch:
    """Train a model once on every batch, with the peers' schedule; how long it took."""
    config = TrainingConfig(
        updates=len(given),
        learning_rate=batches.RATE,
        warmup=batches.WARMUP,
        schedule="inverse_sqrt",
        label_smoothing=batches.MODELS[name],
        validate_every=len(given),
        metric="loss",
        precision=precision,
        seed=42,
    )
    torch.manual_seed(42)
    (task, model), stopwatch = make(name), Stopwatch()
    ongoing = OngoingTraining(run.path, None)  # type: ignore[arg-type]  # nothing asks its predictor
    training: Any = GivenBatches(name, task, given)
    Trainer(run, model.to(device), training, config, stopwatch, ongoing).fit()
    return stopwatch


def main() -> None:
    """Read the arguments, measure, and print the JSON line."""
    given, options = batches.parse_arguments(__doc__)
    torch.set_num_threads(options.threads)
    warmup = options.warmup
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with Run.create(Path(folder) / "run", {"task": "translation"}, "translation") as run:
            stopwatch = fit(
                options.model, given, run, precision=options.precision, device=options.device
            )
    start = stopwatch.ends[warmup - 1] if warmup else began
    taken = {
        "updates": len(given) - warmup,
        "tokens": sum(batch.tokens(options.model) for batch in given[warmup:]),
        "seconds": round(stopwatch.ends[-1] - start, 4),
        "loss": round(statistics.fmean(stopwatch.losses[warmup:]), 4),
    }
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
