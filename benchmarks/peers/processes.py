"""Sides that are modules of this repository, each run in a process of its own."""

import subprocess
from typing import Any

from benchmarks import measuring
from benchmarks.peers.regard_speed import UNAVAILABLE


class UnavailableError(RuntimeError):
    """A side that cannot be measured here, with its own words why."""


def answer(module: str, *arguments: object, threads: int) -> dict[str, Any]:
    """Run ``python -m MODULE ARGUMENTS --threads N``; the JSON line it prints last."""
    try:
        found: dict[str, Any] = measuring.apart(
            module, *arguments, "--threads", threads, threads=threads
        )
    except subprocess.CalledProcessError as error:
        if error.returncode == UNAVAILABLE:
            raise UnavailableError(f"{module}: {error.stderr.strip()}") from error
        raise RuntimeError(f"{module} failed:\n{error.stderr[-3000:]}") from error
    return found
