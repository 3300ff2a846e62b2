"""Multi30k batches that all measured programs share.

A batches file is JSONL, one batch a line: ``{"source": [[ids]], "target": [[ids]]}``, the ids of
the prepared ``spm.model`` (0 unknown, 1 padding, 2 begin, 3 end) without begin and end. A program
adds those itself: the source ends with 3; the decoder reads 2 and the target, and is to predict
the target and 3. Target tokens are therefore ``len(target) + 1`` a sentence; padding never
counts.

Sentences fill a batch until the longest, ended, times their number reaches the budget, padding
included.
"""

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import sized

UNK, PAD, BOS, EOS = 0, 1, 2, 3
BUDGET = sized(4096, 256)
# Transformer-tiny of Wu et al. (2021), of as many layers on each side; in tiny runs as small as a
# model can be.
MODEL_DIM, FFN_DIM, NUM_HEADS, NUM_LAYERS = sized((128, 256, 4, 4), (16, 16, 2, 1))
WIDTH = sized(256, 16)  # of the recurrent models
VOCAB_SIZE = sized(9712, 300)
DROPOUT, RATE, WARMUP = 0.3, 0.005, 2000
NUM_CLASSES, NUM_TAGS = 5, 17
# The models that are compared, and the label smoothing of each.
MODELS = {"transformer": 0.1, "rnn": 0.1, "classifier": 0.1, "tagger": 0.0}
# Sentences that are sorted by length together.
WINDOW = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class IdBatch:
    """One batch of sentence pairs as ids, without begin, end and padding."""

    source: list[list[int]]
    target: list[list[int]]

    @property
    def target_tokens(self) -> int:
        return sum(len(ids) + 1 for ids in self.target)

    @property
    def classes(self) -> list[int]:
        """A label for each source, of which nothing is to be learned."""
        return [sum(ids) % NUM_CLASSES for ids in self.source]

    @property
    def tags(self) -> list[list[int]]:
        """A tag for each token of each source."""
        return [[token % NUM_TAGS for token in ids] for ids in self.source]

    def tokens(self, model: str) -> int:
        """Tokens that a model's figures count: of targets, or where there are none of sources."""
        is_labelled = model in ("classifier", "tagger")
        return sum(map(len, self.source)) if is_labelled else self.target_tokens


def fill(lengths: Iterable[tuple[int, int]], budget: int = BUDGET) -> Iterator[list[int]]:
    """Cut numbered pairs, in the order given, into batches of a token budget."""
    batch: list[int] = []
    longest = 0
    for number, pair in enumerate(lengths):
        batch.append(number)
        longest = max(longest, max(pair) + 1)
        if longest * len(batch) >= budget:
            yield batch
            batch, longest = [], 0


def shuffled(pairs: int, *, updates: int, seed: int, pairs_per_update: int) -> list[int]:
    """Numbers of pairs, one random permutation after another, enough for so many updates."""
    order: list[int] = []
    epoch = 0
    while len(order) < updates * pairs_per_update:
        numbers = list(range(pairs))
        random.Random(seed + epoch).shuffle(numbers)
        order += numbers
        epoch += 1
    return order


def by_length(
    order: Sequence[int], lengths: Sequence[tuple[int, int]], *, window: int = WINDOW
) -> list[int]:
    """Sort windows of an order by length, so that sentences of one batch are about equally long."""
    return [
        number
        for start in range(0, len(order), window)
        for number in sorted(
            order[start : start + window], key=lambda n: (max(lengths[n]), *lengths[n])
        )
    ]


def draw(
    source: Sequence[list[int]],
    target: Sequence[list[int]],
    *,
    updates: int,
    seed: int = 42,
    budget: int = BUDGET,
) -> list[list[int]]:
    """The pairs of each of the first ``updates`` batches."""
    lengths = [(len(s), len(t)) for s, t in zip(source, target, strict=True)]
    most = 450 * max(1, -(-budget // 4096))  # pairs of a batch
    order = shuffled(len(lengths), updates=updates, seed=seed, pairs_per_update=most)
    order = by_length(order, lengths)
    batches = [[order[n] for n in batch] for batch in fill((lengths[n] for n in order), budget)]
    random.Random(seed).shuffle(batches)
    return batches[:updates]


def write(
    path: Path,
    drawn: Iterable[Sequence[int]],
    source: Sequence[list[int]],
    target: Sequence[list[int]],
) -> None:
    """Write a batches file, complete or not at all."""
    half_written = path.with_suffix(".part")
    with half_written.open("w", encoding="utf-8") as file:
        for batch in drawn:
            pairs = {"source": [source[n] for n in batch], "target": [target[n] for n in batch]}
            file.write(json.dumps(pairs, separators=(",", ":")) + "\n")
    half_written.replace(path)


def read(path: Path) -> list[IdBatch]:
    """Read a batches file."""
    with path.open(encoding="utf-8") as file:
        return [IdBatch(**json.loads(line)) for line in file]


def padded(rows: Sequence[list[int]], *, pad_id: int = PAD) -> list[list[int]]:
    """Rows filled up on the right to the longest."""
    longest = max(map(len, rows))
    return [row + [pad_id] * (longest - len(row)) for row in rows]


def parse_arguments(description: str | None) -> tuple[list[IdBatch], argparse.Namespace]:
    """Batches and options of a side that trains on a batches file."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("batches", type=Path, help="a batches file")
    parser.add_argument("--model", choices=list(MODELS), default="transformer")
    parser.add_argument("--updates", type=int, default=12, help="how many batches to train on")
    parser.add_argument("--warmup", type=int, default=2, help="of these, not timed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    return read(options.batches)[: options.updates], options
