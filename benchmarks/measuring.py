"""Shared by all benchmarks: the machine, alternation, medians, and the record.

A record is ``benchmarks/records/NAME.json``: the commit, the command, the machine with its load
before, threads and rounds, the samples of every side, and ``figures``, the lines that
``benchmarks.tables`` puts into docs/measured.md. Nothing here needs torch, so a script can measure
programs that live in other environments.

With ``REGARD_TINY`` set to a folder, every script works on sizes that mean nothing, in seconds, and
leaves its record and its drawings in that folder: it shows that the script runs.
"""

import argparse
import io
import json
import os
import runpy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeVar

from benchmarks.occasion import ROOT, TINY, before_timing, kind, occasion, versions
from benchmarks.occasion import machine as machine

RECORDS = (TINY or Path(__file__).resolve().parent) / "records"
DRAWINGS = (TINY or ROOT / "docs") / "figures"
FORMAT = 3
SECOND = "second"  # folder of records of speed on another kind of processor

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

SampleT = TypeVar("SampleT")
SizeT = TypeVar("SizeT")


def sized(full: SizeT, tiny: SizeT) -> SizeT:
    return full if TINY is None else tiny


def corpora() -> Path:
    """The folder of corpora: ``REGARD_DATA``, or ``../shared/data`` beside the repository."""
    return Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))


def thread_environment(threads: int) -> dict[str, str]:
    """This process's environment, with every thread pool of a child limited to ``threads``."""
    return {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(threads))}


def apart(module: str, *arguments: object, threads: int) -> Any:
    """The JSON line that ``python -m MODULE ARGUMENTS`` prints last, in a process of its own.

    A tiny run of it stays in this process, as most of its time would be Python's start.
    """
    said = [str(argument) for argument in arguments]
    if TINY is not None:
        return json.loads(_here(module, said).strip().splitlines()[-1])
    done = subprocess.run(
        [sys.executable, "-m", module, *said],
        cwd=ROOT,
        env=thread_environment(threads),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _here(module: str, arguments: Sequence[str]) -> str:
    kept, printed = sys.argv, io.StringIO()
    sys.argv = [module, *arguments]
    try:
        with redirect_stdout(printed):
            runpy.run_module(module, run_name="__main__", alter_sys=False)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{module} failed: {end.code}") from end
    finally:
        sys.argv = kept
    return printed.getvalue()


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Several measurements of one thing."""

    median: float  # the middle one, which is the figure to quote
    low: float  # the smallest
    high: float  # the largest
    samples: tuple[float, ...]  # all of them, in the order they were taken

    @classmethod
    def of(cls, samples: Iterable[float]) -> Self:
        """Summarise samples, of which there must be at least one."""
        taken = tuple(samples)
        return cls(median=statistics.median(taken), low=min(taken), high=max(taken), samples=taken)

    @property
    def relative(self) -> float:
        """Half the range over the median: 0.02 reads as ±2 %."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def table(self) -> dict[str, Any]:
        """The spread as JSON, with its relative width."""
        return {**asdict(self), "relative": round(self.relative, 4)}


def mean_of_seeds(values: Sequence[float], digits: int) -> str:
    """The mean, of several seeds ± half their range."""
    mean = f"{statistics.mean(values):.{digits}f}"
    half = (max(values) - min(values)) / 2
    return mean if len(values) == 1 else f"{mean} ± {half:.{digits}f}"


def command(
    about: str | None, *, work: str | None = None, threads: int = 1
) -> argparse.ArgumentParser:
    """The parser of a script: ``--threads``, ``--dry``, and ``--work`` where that has a meaning."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if work is not None:
        parser.add_argument("--work", type=Path, required=True, help=work)
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--dry", action="store_true", help="write no record")
    return parser


def once(path: Path, measure: Callable[[], Any]) -> Any:
    """The figures in a file, which are measured where it is not there."""
    if not path.exists():
        before = machine()
        found = measure()
        found = {"measured": occasion(before), **found}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    return json.loads(path.read_text("utf-8"))


def parts_in(
    work: Path,
    names: Iterable[str],
    only: Sequence[str],
    measure: Callable[[str], Mapping[str, Any]],
) -> dict[str, Any]:
    """Parts by name, each in a file of ``work``: those wanted, and those that are there."""
    files = {name: work / f"{name}.json" for name in names}
    return {
        name: once(file, partial(measure, name))
        for name, file in files.items()
        if name in only or file.exists()
    }


def alternate(
    sides: Mapping[str, Callable[[], SampleT]],
    rounds: int,
    *,
    report: Callable[[str], None] = print,
) -> dict[str, list[SampleT]]:
    """Call every side once a round, in turn (A B C A B C …), so that all meet the same weather."""
    samples: dict[str, list[SampleT]] = {name: [] for name in sides}
    for turn in range(1, rounds + 1):
        for name, measure in sides.items():
            start = time.perf_counter()
            sample = measure()
            samples[name].append(sample)
            report(
                f"round {turn}/{rounds}  {name}: {sample}  ({time.perf_counter() - start:.1f} s)"
            )
    return samples


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """The spread of ours/theirs, each round's pair divided before the median is taken."""
    return Spread.of(mine / other for mine, other in zip(ours, theirs, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One line of a table."""

    what: str  # the task and the measure, in words
    ours: str  # our value with its unit
    beside: str  # what it is to be read beside: a peer, a trivial baseline, or the bar
    note: str = ""  # how it was measured, where that is not plain from the rest
    # Whose fingerprints say whether it holds; by default those of all of the record.
    parts: Sequence[str] = ()


def write_record(
    name: str,
    *,
    title: str,
    figures: Sequence[Figure],
    details: Mapping[str, Any],
    packages: Sequence[str] = ("torch",),
    threads: Sequence[int] = (),
    rounds: int | None = None,
    started_on: Mapping[str, Any] | None = None,
    folder: Path = RECORDS,
) -> Path:
    """Write ``NAME.json``, complete or not at all.

    What was measured whole, of one commit, holds at that commit. Speed on another kind of processor
    than that of the record before leaves it, as ``second/NAME``.
    ``threads`` are those of every side, by default torch's; ``rounds`` are given by what is timed.
    """
    when = occasion(started_on)
    parts = set(_commits(details))
    is_whole = {when["commit"], *parts} == {when["commit"]} != {None}
    holds = is_whole and not when["commit"].endswith("+")
    record = {
        "format": FORMAT,
        "name": name,
        "title": title,
        "script": f"python -m benchmarks.{script_of(name)}",
        **when,
        "held": {key: when[key] for key in ("date", "commit")} if holds else None,
        "threads": sorted(set(threads)) or _torch_threads(),
        "rounds": rounds,
        "versions": versions(*packages),
        "figures": [asdict(figure) for figure in figures],
        "details": dict(details),
    }
    if rounds is None or parts:
        return store(record, folder)
    first, second = folder / f"{name}.json", folder / SECOND / f"{name}.json"
    if first.exists() and _kind_of(first) != kind(when["machine"]):
        before = json.loads(first.read_text("utf-8"))
        store({**before, "name": f"{SECOND}/{name}"}, folder)
    store(record, folder)
    if second.exists() and _kind_of(second) == kind(when["machine"]):
        second.unlink()
    return first


def holds(record: Mapping[str, Any], figure: Mapping[str, Any]) -> bool:
    """Whether a figure has been found to hold: with its whole record, or by its own parts."""
    prints, parts = record.get("fingerprint", {}), figure.get("parts")
    own = [prints.get(part, {"is_recorded": False}) for part in parts or ()]
    agree = [each["is_recorded"] and each.get("compared", {}).get("agrees", True) for each in own]
    return bool(record.get("held")) or bool(agree and all(agree))


def _kind_of(record: Path) -> str:
    return kind(json.loads(record.read_text("utf-8"))["machine"])


def store(record: Mapping[str, Any], folder: Path = RECORDS) -> Path:
    """Write a record to its place, complete or not at all."""
    path = folder / f"{record['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    half_written = path.with_suffix(".json.part")
    half_written.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")
    half_written.replace(path)
    return path


def _commits(details: object) -> Iterator[str | None]:
    """The commits of parts that were measured at times of their own."""
    if isinstance(details, Mapping):
        for name, part in details.items():
            if name == "measured" and isinstance(part, Mapping) and "commit" in part:
                yield part["commit"]
            else:
                yield from _commits(part)


def write_rows(
    name: str,
    rows: Mapping[str, Mapping[str, Any]],
    *,
    title: str,
    recipes: Mapping[str, Mapping[str, Any]],
    figures: Callable[[str, Mapping[str, Any]], Iterable[Figure]],
    details: Mapping[str, Any],
    packages: Sequence[str] = ("torch",),
    threads: Sequence[int] = (),
    started_on: Mapping[str, Any] | None = None,
    folder: Path = RECORDS,
) -> Path:
    """Write ``NAME.json`` with the rows there are: those given, and those it has from before.

    A row that it has from before stays where its recipe is still the same. The record says which
    rows are not in it, and of each when and on which machine it was measured.
    """
    when = occasion(started_on)
    path = folder / f"{name}.json"
    before = json.loads(path.read_text("utf-8"))["details"]["rows"] if path.exists() else {}
    there = dict[str, Mapping[str, Any]]()
    for row, recipe in recipes.items():
        if row in rows:
            there[row] = {"recipe": recipe, "measured": when, **rows[row]}
        elif row in before and before[row]["recipe"] == json.loads(json.dumps(recipe)):
            there[row] = before[row]
    return write_record(
        name,
        title=title,
        figures=[figure for row, found in there.items() for figure in figures(row, found)],
        details={
            **details,
            "not measured": [row for row in recipes if row not in there],
            "rows": there,
        },
        packages=packages,
        threads=threads,
        started_on=started_on,
        folder=folder,
    )


# What was measured of one work with so many threads: what it is called, samples, lines.
Measured = tuple[str, Any, Sequence[Figure]]


def write_untrained(path: Path, recipe: Any) -> None:
    """A finished run of a recipe with random weights, whose speed is that of a trained one."""
    import torch

    from regard.runs import Run
    from regard.tasks import TASKS

    kind = TASKS[recipe.task].task
    task = kind.learn(recipe, kind.read_parts(recipe).train)
    torch.manual_seed(0)
    with Run.create(path, recipe.table(), recipe.task) as run:
        with run.new_tokenizer_folder() as folder:
            task.save(folder)
        run.finish(task.build_model().state_dict())


def measure_speed(
    name: str,
    *,
    title: str,
    about: str | None,
    rounds: int,
    measure: Callable[..., Iterable[Measured]],
    side: Callable[..., object] = print,
    works: Sequence[str] = ("all",),
    threads: Sequence[int] = (1, os.cpu_count() or 1),
    peer: str | None = None,
    packages: Sequence[str] = ("torch",),
    details: Mapping[str, Any] | None = None,
    needs_folder: bool = False,
) -> None:
    """The command of a benchmark of speed: every work with each number of threads, then the record.

    It takes ``--rounds``, ``--threads``, ``--dry``, ``--only`` where there are several works,
    ``--work`` where it needs a folder, which ``measure`` takes too, and ``--side``, for itself in
    another process.
    """
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, nargs="+", default=threads)
    parser.add_argument("--dry", action="store_true", help="write no record")
    parser.add_argument("--side", nargs="+", help=argparse.SUPPRESS)
    if needs_folder:
        parser.add_argument("--work", type=Path, help="folder outside the repository")
    if len(works) > 1:
        parser.add_argument("--only", nargs="+", choices=works, help="some works, and no record")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(side(*options.side)))
        return
    chosen = getattr(options, "only", None) or works
    is_dry = options.dry or set(chosen) != set(works)
    if peer is not None and find_spec(peer) is None:
        print(f"{peer} is left out, and no record is written: it is not installed.")
        is_dry = True
    if needs_folder and options.work is None:
        parser.error("--work names no folder")
    before, figures = before_timing(options.rounds, is_dry=is_dry), list[Figure]()
    found: dict[str, Any] = dict(details or {})
    folder = (options.work.resolve(),) if needs_folder else ()
    for work in chosen:
        for count in sorted(set(options.threads)):
            for what, samples, lines in measure(work, count, options.rounds, *folder):
                found[what] = samples
                figures += lines
                print(*lines, sep="\n")
    if not is_dry:
        write_record(
            name,
            title=title,
            figures=figures,
            details=found,
            packages=packages,
            threads=options.threads,
            rounds=options.rounds,
            started_on=before,
        )


def read_records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """Every record of a folder, by name; then those of another processor."""
    paths = [*sorted(folder.glob("*.json")), *sorted(folder.glob(f"{SECOND}/*.json"))]
    return [json.loads(path.read_text("utf-8")) for path in paths]


def script_of(record: str) -> str:
    """Name of the script that writes a record, which those of another processor share."""
    return record.removeprefix(f"{SECOND}/")


def _torch_threads() -> list[int]:
    torch = sys.modules.get("torch")
    return [] if torch is None else [torch.get_num_threads()]
