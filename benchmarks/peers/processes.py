"""Sides that are modules of this repository, each run in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import measuring
from benchmarks.peers.regard_speed import UNAVAILABLE


class UnavailableError(RuntimeError):
    """A side that cannot be measured here, with its own words why."""


def answer(module: str, *arguments: object, threads: int) -> dict[str, Any]:
    """Run ``python -m MODULE ARGUMENTS --threads N``; the JSON line it prints last.

    Raises:
        UnavailableError: It says that it cannot be measured.
        RuntimeError: It failed.
    """
    command: Sequence[str] = [
        *(sys.executable, "-m", module),
        *(str(argument) for argument in arguments),
        *("--threads", str(threads)),
    ]
    done = subprocess.run(
        command,
        cwd=measuring.ROOT,
        env=measuring.thread_environment(threads),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == UNAVAILABLE:
        raise UnavailableError(f"{module}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise RuntimeError(f"{module} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
