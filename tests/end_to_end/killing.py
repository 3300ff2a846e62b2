"""Stops a Python program at its n-th dealing with the disk, as a kill or a full disk would.

To count the dealings of a program, and then to kill it inside the 17th::

    python killing.py count COUNT_FILE -m regard train recipe.toml run
    python killing.py 17 inside -m regard train recipe.toml run
"""

import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

OPERATIONS = ("write", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "truncate")
OPERATIONS += ("ftruncate",)


class Fault:
    """Counts what the process asks of the disk through ``os``, and strikes at one of the calls."""

    def __init__(
        self, at: int = 0, moment: str = "before", strike: Callable[[], Any] | None = None
    ) -> None:
        self.at = at
        self.moment = moment
        self.strike = strike or (lambda: os.kill(os.getpid(), signal.SIGKILL))
        self.calls: list[str] = []
        self._original = {name: getattr(os, name) for name in OPERATIONS}

    def __enter__(self) -> "Fault":
        for name, original in self._original.items():
            setattr(os, name, self._watched(name, original))
        return self

    def __exit__(self, *_: object) -> None:
        for name, original in self._original.items():
            setattr(os, name, original)

    def _watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) != self.at:
                return original(*args, **kwargs)
            if self.moment == "before":
                self.strike()
            if self.moment == "inside" and name == "write":
                descriptor, content = args
                original(descriptor, content[: len(content) // 2])
                self.strike()
            result = original(*args, **kwargs)
            self.strike()
            return result

        return call


def main(arguments: list[str]) -> None:
    first, second, *program = arguments
    fault = Fault() if first == "count" else Fault(int(first), second)
    with fault:
        try:
            _run_program(program)
        finally:
            if first == "count":
                Path(second).write_text(str(len(fault.calls)))


def _run_program(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
