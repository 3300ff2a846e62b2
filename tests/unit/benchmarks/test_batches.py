"""All programs are given the same batches, and count the same tokens."""

import random
from pathlib import Path

from benchmarks.peers import batches


def make_pairs(count: int = 400) -> tuple[list[list[int]], list[list[int]]]:
    rng = random.Random(5)
    sides = ([[9] * rng.randint(1, 30) for _ in range(count)] for _ in range(2))
    return next(sides), next(sides)


def test_reading_a_drawn_order_again_gives_the_same_batches():
    source, target = make_pairs()
    drawn = batches.draw(source, target, updates=20, budget=256)
    order = [n for batch in drawn for n in batch]
    lengths = [(len(source[n]), len(target[n])) for n in order]
    filled = [[order[n] for n in batch] for batch in batches.fill(lengths, budget=256)]
    assert filled == drawn


def test_every_batch_reaches_the_budget_and_would_not_without_its_last_pair():
    source, target = make_pairs()
    for batch in batches.draw(source, target, updates=20, budget=256):
        longest = [max(len(source[n]), len(target[n])) + 1 for n in batch]
        assert max(longest) * len(batch) >= 256
        assert max(longest[:-1], default=0) * (len(batch) - 1) < 256


def test_a_batches_file_gives_back_its_pairs_and_counts_the_ends(tmp_path: Path):
    source, target = [[4, 5], [6]], [[7], [8, 9, 10]]
    batches.write(tmp_path / "b.jsonl", [[1, 0]], source, target)
    (batch,) = batches.read(tmp_path / "b.jsonl")
    assert batch.source == [[6], [4, 5]]
    assert batch.target == [[8, 9, 10], [7]]
    assert batch.target_tokens == 4 + 2
