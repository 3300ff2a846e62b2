"""``regard demo --train`` from its start to its end: seconds, and what its translator has learned.

    python -m benchmarks.demo --work FOLDER [--rounds 5] [--written FILE] [--dry]

Each round is the command in a process of its own, into a new folder, with all threads. What was
learned is that of the last round: right outputs (greedy) of the test part, of new combinations and
of sentences that the authors wrote, and the alignment error. ``--written`` names other sentences:
source, then right outputs, parted by tabs.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.measuring import Figure, Spread

NAME = "demo"
# What is asked of it: seconds of training and around it, right outputs in percent, errors.
TRAINING, AROUND, TEST, NEW, WRITTEN, ERROR = 60, 15, 96, 83, 90, 0.06


def seconds(run: Path) -> tuple[float, float]:
    """The seconds of training, and of all else that the command does."""
    shutil.rmtree(run, ignore_errors=True)
    start = time.perf_counter()
    if measuring.TINY is not None:
        from benchmarks.training import train
        from regard.cli.recipes import packaged_recipe
        from regard.tasks import read_recipe

        train(read_recipe(packaged_recipe("demo")), run)
        return time.perf_counter() - start, 0.0
    command = [sys.executable, "-m", "regard", "demo", "--train", "--run", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    whole = time.perf_counter() - start
    told = re.search(r"trained in ([\d,]+) s", done.stdout + done.stderr)
    assert told is not None, done.stderr[-3000:]
    training = float(told[1].replace(",", ""))
    return training, whole - training


def learned(run: Path, written: Path | None) -> dict[str, float]:
    """Right outputs in percent, and the alignment error over words that have a link."""
    from regard.inference import Predictor
    from regard.inference.alignment import alignment_errors
    from regard.metrics import exact_match
    from regard.text.phrasebook import handwritten, phrases

    predictor = Predictor.load(run)
    by_hand = [(each.source, list(each.references)) for each in handwritten()]
    if written is not None:
        rows = [line.split("\t") for line in written.read_text("utf-8").splitlines()]
        by_hand = [(row[0], row[1:]) for row in rows]
    most = measuring.sized(None, 20)
    parts = {
        part: [(each.source, list(each.references)) for each in phrases(part)[:most]]
        for part in ("test", "new")
    }
    found = {}
    for part, pairs in {**parts, "written": by_hand}.items():
        outputs = predictor.translate([source for source, _ in pairs], beam_size=1)
        right = exact_match([each.best.text for each in outputs], [each for _, each in pairs])
        found[part] = right.value
    errors = alignment_errors(predictor, phrases("test")[:most])
    return {**found, "error": errors.linked}


def figures(times: list[tuple[float, float]], found: dict[str, float]) -> list[Figure]:
    training, around = (Spread.of(each) for each in zip(*times, strict=True))
    return [
        Figure(
            what="regard demo: training / all around it",
            ours=f"{training.median:.0f} s / {around.median:.0f} s",
            beside=f"at most {TRAINING} s / {AROUND} s",
            note=f"±{training.relative:.0%}",
        ),
        Figure(
            what="regard demo, right outputs: test part / new combinations / written by hand",
            ours=" / ".join(f"{found[part]:.1f} %" for part in ("test", "new", "written")),
            beside=f"at least {TEST} % / {NEW} % / {WRITTEN} %",
        ),
        Figure(
            what="regard demo: alignment error",
            ours=f"{found['error']:.3f}",
            beside=f"at most {ERROR}",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--written", type=Path, help="other sentences by hand, and no record")
    parser.add_argument("--dry", action="store_true", help="write no record")
    options = parser.parse_args()
    is_dry = options.dry or options.written is not None
    before = measuring.before_timing(options.rounds, is_dry=is_dry)
    run = options.work / "demo"
    times = [seconds(run) for _ in range(options.rounds)]
    found: dict[str, Any] = learned(run, options.written)
    lines = figures(times, found)
    print(*lines, sep="\n")
    if not is_dry:
        measuring.write_record(
            NAME,
            title="The demo, from its start to its end",
            figures=lines,
            details={"seconds of training and around it": times, "learned": found},
            rounds=options.rounds,
            started_on=before,
        )


if __name__ == "__main__":
    main()
