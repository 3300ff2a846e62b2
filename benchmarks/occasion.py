"""When, where and of which code something is measured; and what is no time to measure.

What is timed is timed on an idle machine, from a commit, in five rounds or more: `before_timing`
refuses anything else, unless no record is to be written.
"""

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TINY = Path(os.environ["REGARD_TINY"]).resolve() if os.environ.get("REGARD_TINY") else None
FEWEST_ROUNDS = 5
HIGHEST_LOAD = 1.0
_PATIENCE = 180  # seconds in which the load, a mean over a minute, may fall to it
# Written from what was measured, so no code of it.
_WRITTEN = (":!benchmarks/records", ":!src/regard/recipes/figures.json")

# What decides how fast matrix products run on a CPU.
_TELLING_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")


def machine() -> dict[str, Any]:
    commit()  # that of the code as it is now, not of what is edited while it is measured
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "flags": _cpu_flags(),
        "memory_gib": _memory_gib(),
        **_gpus(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def kind(machine: Mapping[str, Any]) -> str:
    """The kind of a machine: its processor, and the last of its telling instructions."""
    return ", ".join([machine["cpu"], *machine["flags"][-1:]])


def before_timing(rounds: int, *, is_dry: bool) -> dict[str, Any]:
    """The machine before something is timed; ends the script where no record could be written.

    The load may take some minutes to fall, as it is a mean.
    """
    if is_dry or TINY is not None:
        return machine()
    problem = None
    if rounds < FEWEST_ROUNDS:
        problem = f"rounds must be at least {FEWEST_ROUNDS}; got {rounds}"
    elif (measured := commit()) is None:
        problem = "the code must be that of a commit; got a folder that is no clone"
    elif measured.endswith("+"):
        problem = f"the code must be that of a commit; got changes after {measured[:-1]}"
    else:
        start = time.monotonic()
        while (load := os.getloadavg()[0]) > HIGHEST_LOAD:
            if time.monotonic() - start > _PATIENCE:
                problem = f"the load must be at most {HIGHEST_LOAD}; got {load:.2f}"
                break
            print(f"waiting until the load, {load:.2f}, is {HIGHEST_LOAD}", file=sys.stderr)
            time.sleep(10)
    if problem is not None:
        sys.exit(f"{problem}. To print without writing a record: --dry")
    return machine()


def versions(*packages: str) -> dict[str, str | None]:
    """Python's version and those of packages; None for one that is not installed here."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def occasion(started_on: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """When, at which commit and on which machine something is measured.

    A record has it, and so has each of its parts where parts are measured on different days.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "command": " ".join(["python", *map(_shown, sys.orig_argv[1:])]),
        "machine": dict(started_on or machine()),
    }


def _shown(argument: str) -> str:
    """An argument of the command; of the path of a folder elsewhere, its last name."""
    return f"…/{Path(argument).name}" if Path(argument).is_absolute() else argument


@cache
def commit() -> str | None:
    """The commit that is measured; a plus sign says that the code differs from it.

    What is written from measurements is no difference: a record would mark the next.
    """
    head = git("rev-parse", "--short", "HEAD")
    if head is None:
        return None
    changed = git("status", "--porcelain", "--", "src", "benchmarks", *_WRITTEN)
    return head.strip() + ("+" if changed else "")


def git(*arguments: str) -> str | None:
    """The print of a git command in the repository; None where it fails, or there is none."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def _cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), flags=re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def _cpu_flags() -> list[str]:
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", _cpuinfo(), flags=re.MULTILINE)
    present = set(found[1].split()) if found else set()
    return [flag for flag in _TELLING_FLAGS if flag in present]


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text("utf-8") if path.exists() else ""


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return None


def _gpus() -> dict[str, str]:
    """The name of the NVIDIA GPUs, under ``gpu``; nothing where there is none."""
    try:
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"gpu": ", ".join(done.stdout.strip().splitlines())}
