"""Rows a second of a bulk job: two workers of Ray Data beside one process, over the same files.

    python -m benchmarks.bulk_prediction [--rounds 3] [--dry]

A small Transformer with random weights, whose speed is that of a trained one, translates files of
the phrasebook with a beam. One process answers them one by one; two workers on the same machine,
each with one thread as the one process has, get them as they are free. The rate is that of answers
while all workers have a model, from the first file that is answered to the last; the whole time,
with Python's start and Ray's, is in the record. All answers are compared, byte for byte.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    Figure,
    Spread,
    alternate,
    apart,
    machine,
    paired_ratio,
    sized,
    write_record,
    write_untrained,
)

NAME = "bulk_prediction"
SHARDS, ROWS = sized((24, 400), (3, 4))
MODEL = sized(
    {
        "model_dim": 128,
        "num_heads": 4,
        "ffn_dim": 256,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        "norm": "pre",
    },
    {
        "model_dim": 8,
        "num_heads": 2,
        "ffn_dim": 8,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
)
SIDES = {"one process": 0, "two workers": 2}
BAR = 1.7


def make_run(path: Path) -> None:
    """A run with random weights, as if it had been trained."""
    from regard.tasks import recipe_from_table

    table = {
        "task": "translation",
        "data": {"train": "phrasebook"},
        "tokenizer": {"type": "words", "shared": False},
        "model": {"type": "transformer", **MODEL},
        "decoding": {"beam_size": 4, "max_ratio": 1.5},
    }
    write_untrained(path, recipe_from_table(table))


def write_files(folder: Path) -> None:
    """Sources of the phrasebook, as many in each file, none twice."""
    from regard.text.phrasebook import phrases

    folder.mkdir()
    sources = list(dict.fromkeys(phrase.source for phrase in phrases("train")))
    for place in range(SHARDS):
        rows = sources[place * ROWS : (place + 1) * ROWS]
        (folder / f"part-{place:03}.txt").write_text("\n".join(rows) + "\n", "utf-8")


def measure_here(side: str, work: Path) -> dict[str, Any]:
    """The whole time, the rate, and what tells the answers from others, in this process."""
    from regard.inference.bulk import ShardReport, answer_files, local_engine, ray_engine

    workers = SIDES[side]
    ends: list[float] = []

    def progress(report: ShardReport) -> None:
        ends.append(time.perf_counter())

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as kept:
        answer_files(
            work / "run",
            [work / "files"],
            Path(kept) / "answers",
            engine=ray_engine(actors=workers) if workers else local_engine,
            progress=progress,
        )
        digest = hashlib.sha256(b"".join(_answers(Path(kept) / "answers"))).hexdigest()
    # When the first file is done, each other worker is as far with one of its own.
    files = SHARDS - max(1, workers)
    return {
        "seconds": time.perf_counter() - start,
        "rows_a_second": files * ROWS / max(ends[-1] - ends[0], 1e-9),
        "answers": digest,
    }


def _answers(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.glob("*.jsonl")):
        yield path.read_bytes()


def measure_apart(side: str, work: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    found: dict[str, Any] = apart(f"benchmarks.{NAME}", "--side", side, work, threads=1)
    return found


def figure(samples: dict[str, list[dict[str, Any]]]) -> Figure:
    """The line of docs/measured.md."""
    one, two = ([each["rows_a_second"] for each in samples[side]] for side in SIDES)
    ratio = paired_ratio(two, one)
    whole = {side: Spread.of(each["seconds"] for each in samples[side]).median for side in SIDES}
    return Figure(
        what=f"A bulk job, {SHARDS} files of {ROWS} sentences: rows a second of two workers",
        ours=f"{Spread.of(two).median:,.0f}",
        beside=f"one process: {Spread.of(one).median:,.0f} (bar: {BAR} ×)",
        note=(
            f"{ratio.median:.2f} × ± {ratio.relative:.0%}; with every start "
            f"{whole['two workers']:.0f} s and {whole['one process']:.0f} s; the same answers"
        ),
    )


def main() -> None:
    """Measure both sides in turn, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="write no record")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side, work = options.side
        print(json.dumps(measure_here(side, Path(work))))
        return
    if find_spec("ray") is None:
        print("nothing is measured, and no record is written: ray is not installed.")
        return
    before = machine()
    with tempfile.TemporaryDirectory() as kept:
        work = Path(kept)
        make_run(work / "run")
        write_files(work / "files")
        sides = {side: partial(measure_apart, side, work) for side in SIDES}
        samples = alternate(sides, options.rounds)
    different = {each["answers"] for taken in samples.values() for each in taken}
    if len(different) > 1:
        raise SystemExit("every side must give the same answers; they differ.")
    if options.dry:
        return
    path = write_record(
        NAME,
        title="Bulk prediction: two workers of Ray Data beside one process",
        figures=[figure(samples)],
        details={"rounds": options.rounds, "samples": samples},
        packages=("torch", "ray"),
        started_on=before,
    )
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
