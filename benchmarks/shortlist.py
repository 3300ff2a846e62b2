"""Tokens a second of translating with a shortlist and with all pieces.

    python -m benchmarks.shortlist [--rounds 5] [--threads 1 2] [--dry]

The models of ``benchmarks.decoding_speed``, with random weights, and lists at random: 50 target
pieces of each source piece, and 100 more. Pieces come as often as in texts, the n-th of them 1/n as
often as the first (Zipf), so that sentences share many. What lists cost of quality, and what they
save with real text, is in ``benchmarks.precision_loss``. Every search is measured with lists and
without in turn, in float32 and int8, in one process.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.decoding_speed import (
    OUTPUT,
    SINGLE,
    SOURCE,
    WORKS,
    Work,
    built,
    translating,
)
from benchmarks.measuring import Figure, Measured, Spread, apart, measure_speed, paired_ratio, sized

NAME = "shortlist"
PRECISIONS = ("float32", "int8")
PER_PIECE, FREQUENT = sized((50, 100), (3, 3))
ALL, LISTED = "all pieces", "shortlists"


def shortlist_of(work: Work) -> Any:
    """Lists at random."""
    import numpy as np

    from regard.models.shortlist import Shortlist

    likely = _drawn(work, (work.vocabulary, PER_PIECE)).astype(np.int32)
    return Shortlist(likely, np.arange(FREQUENT + 4), work.vocabulary)


def sources_of(work: Work, count: int) -> list[list[int]]:
    """Ids of as many sentences, some of them often."""
    rows: list[list[int]] = _drawn(work, (count, SOURCE)).tolist()
    return rows


def _drawn(work: Work, shape: tuple[int, int]) -> Any:
    """Ids by Zipf's law, none of them reserved."""
    import numpy as np

    chances = 1 / np.arange(1, work.vocabulary - 3)
    draw = np.random.default_rng(0)
    return 4 + draw.choice(len(chances), size=shape, p=chances / chances.sum())


def measure_here(name: str, threads: str, rounds: str) -> list[dict[str, Any]]:
    """Tokens a second of each search of a model, by precision, with lists and without."""
    import torch

    from regard.runtime import in_precision, prepared

    torch.set_num_threads(int(threads))
    work, shortlist, found = WORKS[name], shortlist_of(WORKS[name]), []
    for precision in PRECISIONS:
        model = in_precision(built(work), precision)
        sides = {
            ALL: translating(work, prepared(model), sources_of),
            LISTED: translating(work, prepared(model, shortlist=shortlist), sources_of),
        }
        for count, width in work.searches:
            samples: dict[str, list[float]] = {side: [] for side in sides}
            for turn in range(int(rounds) + 1):
                for side, translate in sides.items():
                    speed = _tokens_a_second(translate, count, width)
                    if turn:  # the first compiles, and reads what is in no cache yet
                        samples[side].append(speed)
            found.append(
                {"precision": precision, "sentences": count, "beam": width, "speeds": samples}
            )
    return found


def _tokens_a_second(translate: Callable[[int, int], int], count: int, width: int) -> float:
    start = time.perf_counter()
    tokens = sum(translate(count, width) for _ in range(SINGLE if count == 1 else 1))
    return tokens / (time.perf_counter() - start)


def figure(work: Work, found: Mapping[str, Any], threads: int) -> Figure:
    """One line of docs/measured.md."""
    speeds: Mapping[str, Sequence[float]] = found["speeds"]
    count, ratio = found["sentences"], paired_ratio(speeds[LISTED], speeds[ALL])
    at_once = "one sentence at a time" if count == 1 else f"{count} sentences at once"
    search = "greedy" if found["beam"] == 1 else f"a beam of {found['beam']}"
    return Figure(
        what=f"{work.title}, {found['precision']}: {at_once}, {search}, threads: {threads}",
        ours=f"{Spread.of(speeds[LISTED]).median:,.0f} tokens/s with shortlists",
        beside=f"{Spread.of(speeds[ALL]).median:,.0f} with all pieces",
        note=f"{ratio.median:.2f} × ± {ratio.relative:.0%}",
    )


def measure(name: str, threads: int, rounds: int) -> Iterator[Measured]:
    """All searches of a model with so many threads."""
    found = apart(f"benchmarks.{NAME}", "--side", name, threads, rounds, threads=threads)
    yield f"{name}, threads: {threads}", found, [figure(WORKS[name], e, threads) for e in found]


def main() -> None:
    """Measure both models, and write the record."""
    measure_speed(
        NAME,
        title="Translating with shortlists, beside all pieces",
        about=__doc__,
        rounds=5,
        side=measure_here,
        measure=measure,
        works=list(WORKS),
        details={"per_piece": PER_PIECE, "frequent": FREQUENT, "tokens": [SOURCE, OUTPUT]},
    )


if __name__ == "__main__":
    main()
