"""Batches of about equal length, in an order that a later run can take up anywhere."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Int64, Shaped
from torch import Tensor

from regard.checks import check_count, check_divides
from regard.errors import SettingError, ShapeError
from regard.text.tokenizers.pieces import BOS_ID, EOS_ID, PAD_ID

Indices = Int64[np.ndarray, " _"]
# The ids, or other whole numbers, of one row.
Ids = Sequence[int] | Shaped[np.ndarray, " _"]
# The lengths of both sides of some samples.
LengthsAt = Callable[[Indices], Int64[np.ndarray, "2 _"]]

# Samples sorted by length together; an epoch can be taken up at each of its multiples.
WINDOW = 32_768
# Neighbours that are read together where the text is on disk. Of each position that is read the
# system maps about a megabyte, so that there cannot be many in a window.
BLOCK = 2048
# Streams of chance above those that shuffle the batches of windows.
_BEYOND_WINDOWS = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """Indices of the samples of a batch.

    Attributes:
        indices: Their indices in the corpus.
        cursor: How many samples of the epoch are used up when this batch is.
    """

    indices: Indices
    cursor: int


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Padded sentence pairs, batch first.

    Attributes:
        source: Ids of the sources.
        source_lengths: How many of each row are real.
        target_in: Inputs of the decoder: begin, then the target.
        labels: Its true outputs: the target, then end.
        target_lengths: How many of each row of ``target_in`` and of ``labels`` are real.
    """

    source: Int[Tensor, "B S"]
    source_lengths: Int[Tensor, " B"]
    target_in: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]
    target_lengths: Int[Tensor, " B"]

    def twice(self) -> "Batch":
        """The batch with all rows repeated behind the first ones."""
        parts = (self.source, self.source_lengths, self.target_in, self.labels, self.target_lengths)
        return Batch(*(torch.cat([tensor, tensor]) for tensor in parts))


class Batches:
    """The batches of every epoch, under a token budget.

    The order of an epoch is a permutation drawn from seed and epoch alone. Windows of it are sorted
    by length, cut into batches, and the batches of a window shuffled: little padding, and still
    another order and other company each epoch.

    Of a text beyond memory (``of_stored``) only the lengths of one window are known at a time. A
    window is drawn as blocks of neighbours from all over the text, so that reads are long; the
    pairs in it are shuffled.

    Example:
        >>> batches = Batches(np.array([3, 9, 4, 8]), np.array([3, 9, 4, 8]), max_tokens=20, seed=0)
        >>> [(sorted(plan.indices.tolist()), plan.cursor) for plan in batches.epoch(0)]
        [([1, 3], 2), ([0, 2], 4)]
        >>> [(sorted(plan.indices.tolist()), plan.cursor) for plan in batches.epoch(0, cursor=2)]
        [([0, 2], 4)]
    """

    def __init__(
        self,
        source_lengths: Int64[np.ndarray, " n"],
        target_lengths: Int64[np.ndarray, " n"],
        *,
        max_tokens: int,
        seed: int,
        window: int = WINDOW,
    ):
        """Take lengths, begin and end included; a longer one than ``max_tokens`` is a batch."""
        check_count("max_tokens", max_tokens)
        check_count("window", window)
        check_count("seed", seed, 0)
        if source_lengths.shape != target_lengths.shape:
            raise ShapeError(
                f"source_lengths and target_lengths must be as many; got {source_lengths.shape} "
                f"and {target_lengths.shape}."
            )
        lengths = np.stack([source_lengths, target_lengths])  # (2, n)
        self._lengths_at: LengthsAt = lambda indices: lengths[:, indices]
        self._size = int(lengths.shape[1])
        self._max_tokens = max_tokens
        self._seed = seed
        self._window = window
        self._block = 1

    @classmethod
    def of_stored(
        cls,
        size: int,
        lengths_at: LengthsAt,
        *,
        max_tokens: int,
        seed: int,
        window: int = WINDOW,
        block: int = BLOCK,
    ) -> "Batches":
        """The batches of ``size`` samples whose lengths are read a window at a time."""
        check_divides("block", block, "window", window)
        nothing = np.zeros(0, dtype=np.int64)
        batches = cls(nothing, nothing, max_tokens=max_tokens, seed=seed, window=window)
        batches._lengths_at, batches._size, batches._block = lengths_at, size, block
        return batches

    def __len__(self) -> int:
        """Samples in an epoch."""
        return self._size

    def epoch(self, epoch: int, cursor: int = 0) -> Iterator[BatchPlan]:
        """The batches of ``epoch`` after its first ``cursor`` samples.

        Raises:
            SettingError: No batch ends at ``cursor``: it was written with other lengths, another
                seed, budget or window.
        """
        if not 0 <= cursor <= len(self):
            raise SettingError(self._wrong_cursor(cursor, epoch))
        drawn = self._drawn(epoch)
        first_window = cursor // self._window
        reached = first_window * self._window
        for number, start in enumerate(range(reached, len(self), self._window), first_window):
            for indices in self._window_batches(drawn(start), epoch, number):
                if reached >= cursor:
                    yield BatchPlan(indices, reached + len(indices))
                reached += len(indices)
                if reached - len(indices) < cursor < reached:
                    raise SettingError(self._wrong_cursor(cursor, epoch))

    def padding(self, epoch: int = 0) -> float:
        """The share of padding among the ids of an epoch, both sides together."""
        real = padded = 0
        for plan in self.epoch(epoch):
            lengths = self._lengths_at(plan.indices)
            real += int(lengths.sum())
            padded += len(plan.indices) * int(lengths.max(axis=1).sum())
        return 1 - real / padded if padded else 0.0

    def _drawn(self, epoch: int) -> Callable[[int], Indices]:
        """A function from an index in the epoch's order to the samples of the window there."""
        block, size = self._block, self._window
        order = permutation(len(self) // block, seed=self._seed, epoch=epoch)
        if block == 1:
            return lambda start: order[start : start + size]
        last = np.arange(len(order) * block, len(self))

        def drawn(start: int) -> Indices:
            firsts = order[start // block : (start + size) // block] * block
            samples = (firsts[:, None] + np.arange(block)).ravel()
            if len(samples) < size:
                samples = np.concatenate([samples, last])
            stream = _BEYOND_WINDOWS + start // size
            shuffled: Indices = samples[
                permutation(len(samples), seed=self._seed, epoch=epoch, stream=stream)
            ]
            return shuffled

        return drawn

    def _window_batches(self, indices: Indices, epoch: int, number: int) -> list[Indices]:
        lengths = self._lengths_at(indices)
        # By target, then source; equals stay in their drawn order.
        order = np.lexsort((lengths[0], lengths[1]))
        batches = self._cut(indices[order], lengths[:, order])
        shuffled = permutation(len(batches), seed=self._seed, epoch=epoch, stream=number + 1)
        return [batches[i] for i in shuffled]

    def _cut(self, indices: Indices, lengths: Int64[np.ndarray, "2 _"]) -> list[Indices]:
        cuts, start, longest = [], 0, 0
        for index, length in enumerate(lengths.max(axis=0).tolist()):
            longest = max(longest, length)
            if (index + 1 - start) * longest > self._max_tokens and index > start:
                cuts.append(index)
                start, longest = index, length
        return np.split(indices, cuts)

    def _wrong_cursor(self, cursor: int, epoch: int) -> str:
        return (
            f"cursor must be where a batch of epoch {epoch} ends; got {cursor} of {len(self)} "
            f"samples. Were the data, the seed, max_tokens or the window changed since?"
        )


def permutation(n: int, *, seed: int, epoch: int, stream: int = 0) -> Indices:
    """The numbers below ``n`` in an order drawn from seed, epoch and stream.

    It sorts raw bits of PCG64, which NumPy promises never to change, unlike its own permutation.
    """
    for name, value in (("n", n), ("seed", seed), ("epoch", epoch), ("stream", stream)):
        check_count(name, value, 0)
    seeds = np.random.SeedSequence([seed, epoch, stream])
    return np.argsort(np.random.PCG64(seeds).random_raw(n), kind="stable").astype(np.int64)


def batched(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices of sentences, shortest first, in groups of at most ``max_tokens`` padded tokens.

    Example:
        >>> list(batched([5, 2, 3], max_tokens=6))
        [[1, 2], [0]]
    """
    check_count("max_tokens", max_tokens)
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[index] > max_tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def pad_pairs(sources: Sequence[Ids], targets: Sequence[Ids], *, source_end: bool = True) -> Batch:
    """Encoded pairs, without begin and end, padded; ``source_end`` ends sources with the end id.

    Example:
        >>> batch = pad_pairs([[7], [8, 9]], [[5, 6], [4]], source_end=False)
        >>> batch.source.tolist(), batch.target_in.tolist(), batch.labels.tolist()
        ([[7, 0], [8, 9]], [[2, 5, 6], [2, 4, 0]], [[5, 6, 3], [4, 3, 0]])
    """
    if len(sources) != len(targets):
        raise ShapeError(
            f"sources and targets must be as many; got {len(sources)} and {len(targets)}."
        )
    end = [EOS_ID] * source_end
    return Batch(
        source=padded(sources, after=end),
        source_lengths=lengths_of(sources) + len(end),
        target_in=padded(targets, before=[BOS_ID]),
        labels=padded(targets, after=[EOS_ID]),
        target_lengths=lengths_of(targets) + 1,
    )


def padded(
    rows: Sequence[Ids], filler: int = PAD_ID, *, before: Ids = (), after: Ids = ()
) -> Int[Tensor, "B N"]:
    """Rows as one tensor, each padded on the right to the longest: ``[[7, 8], [9, 0]]``.

    Each row has the ids ``before`` in front of it and those ``after`` behind it.
    """
    # Row by row into one array: a tensor of each takes three times as long.
    first, more = len(before), len(before) + len(after)
    width = max(map(len, rows), default=-more) + more
    table = np.full((len(rows), width), filler, dtype=np.int64)
    table[:, :first] = before
    for target, row in zip(table, rows, strict=True):
        stop = first + len(row)
        target[first:stop] = row
        target[stop : stop + len(after)] = after
    return torch.from_numpy(table)


def lengths_of(rows: Sequence[Ids]) -> Int[Tensor, " B"]:
    """The number of ids in each row."""
    return torch.tensor([len(row) for row in rows], dtype=torch.long)
