"""Seconds from a command to its end: an import, ``regard --help``, a line of ``regard predict``.

    python -m benchmarks.start_up [--rounds 9] [--dry]

Each is a process of its own, in turn with one that does nothing but ``import torch``, which every
answer waits for. The model is the demo's with random weights, whose answers are long. Modules
are there as bytecode and compiled loops in the cache, as after the first call. The record also has
the size of each package that an installation brings.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from benchmarks.measuring import (
    Figure,
    Spread,
    alternate,
    before_timing,
    paired_ratio,
    write_record,
    write_untrained,
)

NAME = "start_up"
TORCH, IMPORT, HELP, LINE = (
    "import torch",
    "import regard",
    "regard --help",
    "regard predict, one line",
)
SENTENCE = "我爱中国\n"
# What is asked of each, in seconds.
BARS = {IMPORT: 0.15, HELP: 0.3, LINE: 1.5}


def make_run(path: Path) -> None:
    """A run of the demo's recipe with random weights."""
    from regard.cli.recipes import packaged_recipe
    from regard.tasks import read_recipe

    write_untrained(path, read_recipe(packaged_recipe("demo")))


def seconds(*arguments: str) -> float:
    """How long Python takes for this, from its start to its end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        input=SENTENCE,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - start


def megabytes(package: str = "regard") -> dict[str, float]:
    """Size on disk of the packages that one needs without extras, the largest first."""
    sizes: dict[str, float] = {}
    names = {package}
    while names:
        name = names.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of another system or Python
            continue
        files = (Path(str(found.locate_file(each))) for each in found.files or ())
        sizes[name] = sum(each.stat().st_size for each in files if each.is_file()) / 1e6
        needed = (each for each in found.requires or () if "extra ==" not in each)
        of_needed = {re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in needed}
        names |= of_needed - set(sizes)
    del sizes[package]
    return {name: round(size, 1) for name, size in sorted(sizes.items(), key=lambda each: -each[1])}


def figure_of_sizes(sizes: dict[str, float]) -> Figure:
    """One line of docs/measured.md: packages of more than five megabytes."""
    large = [f"{name} {size:.0f}" for name, size in sizes.items() if size > 5]
    return Figure(
        what=f"{len(sizes)} packages that an installation without extras brings",
        ours=f"{sum(sizes.values()):,.0f} MB",
        beside="",
        note=f"{', '.join(large)}; the others less than 5 each",
    )


def figure(side: str, samples: dict[str, list[float]]) -> Figure:
    """One line of docs/measured.md."""
    took = Spread.of(samples[side])
    torch = Spread.of(samples[TORCH])
    note = ""
    if side == LINE:
        ratio = paired_ratio(samples[side], samples[TORCH])
        note = f"{ratio.median:.2f} × of what torch takes ({torch.median:.2f} s)"
    return Figure(
        what=f"{side}: from its start to its end",
        ours=f"{took.median:.2f} s ± {took.relative:.0%}",
        beside=f"at most {BARS[side]} s",
        note=note,
    )


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dry", action="store_true", help="write no record")
    options = parser.parse_args()
    before = before_timing(options.rounds, is_dry=options.dry)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        make_run(run)
        asked = {
            TORCH: ("-c", TORCH),
            IMPORT: ("-c", IMPORT),
            HELP: ("-m", "regard", "--help"),
            LINE: ("-m", "regard", "predict", str(run)),
        }
        sides = {side: partial(seconds, *arguments) for side, arguments in asked.items()}
        alternate(sides, 1, report=lambda line: None)  # which leaves bytecode behind
        samples = alternate(sides, options.rounds)
    sizes = megabytes()
    figures = [*(figure(side, samples) for side in BARS), figure_of_sizes(sizes)]
    print(*figures, sep="\n")
    if options.dry:
        return
    write_record(
        NAME,
        title="From a command to its end",
        figures=figures,
        details={
            "seconds": {side: Spread.of(each).table() for side, each in samples.items()},
            "megabytes": sizes,
        },
        threads=[1],
        rounds=options.rounds,
        started_on=before,
    )


if __name__ == "__main__":
    main()
