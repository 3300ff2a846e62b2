"""Stops a program at its n-th dealing with the disk, as a kill or a full disk would."""

import os
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any

OPERATIONS = ("write", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "truncate")
OPERATIONS += ("ftruncate",)


class Fault:
    """Counts the calls of the process to the disk, and strikes before, inside or after one."""

    def __init__(
        self, at: int = 0, moment: str = "before", strike: Callable[[], Any] | None = None
    ) -> None:
        self.at = at  # from 1; 0 only counts
        self.moment = moment  # inside a write, half of it is done
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


def is_killed(
    work: Callable[[], object], at: int, moment: str, *, seconds: float | None = None
) -> bool:
    """Work in a child that dies at a call to the disk or after a time; whether it died."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Fault(at, moment):
                work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    timer = threading.Timer(seconds or 0, os.kill, (child, signal.SIGKILL))
    if seconds is not None:
        timer.start()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if seconds is not None:
        timer.cancel()
        timer.join()
    assert status in (0, -signal.SIGKILL), "the child has failed; its traceback is above"
    return status != 0
