"""Starts the processes of a training on one machine, and reads the rank of one from torchrun.

Nothing here imports torch, so that errors in a number or the environment are reported at once.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from regard.errors import SettingError, TrainingError

# Set in processes that we started: we say what becomes of them.
LAUNCHED = "REGARD_LAUNCHED"
# Seconds that the others have to save and go where one is gone, or they were asked to.
_BY_THEMSELVES, _ONCE_ASKED = 10.0, 30.0
_LOOK_EVERY = 0.1
_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class ProcessRank:
    """Rank of a process among several.

    Attributes:
        rank: From 0.
        size: Number of processes.
        local_rank: Rank among those on this machine.
        local_size: Number of those.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int


def find_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank | None:
    """Rank given by ``torchrun``; None for a single process.

    Raises:
        SettingError: Some of it is missing, or is no number that can be.

    Example:
        >>> find_rank({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "29500"})
        ProcessRank(rank=1, size=4, local_rank=1, local_size=4)
        >>> find_rank({"WORLD_SIZE": "1"})
    """
    if "WORLD_SIZE" not in environment:
        return None
    size = _number(environment, "WORLD_SIZE", least=1)
    if size == 1:
        return None
    for name in _NAMES:
        if name not in environment:
            raise SettingError(
                f"{name} must be set where WORLD_SIZE is; got none, and WORLD_SIZE={size}. "
                "torchrun sets both; to train by one process, unset WORLD_SIZE."
            )
    rank = _number(environment, "RANK", most=size - 1)
    local_size = _number(environment, "LOCAL_WORLD_SIZE", least=1, default=size)
    local_rank = _number(environment, "LOCAL_RANK", most=local_size - 1, default=rank)
    return ProcessRank(rank, size, local_rank, local_size)


def _number(
    environment: Mapping[str, str],
    name: str,
    *,
    least: int = 0,
    most: int | None = None,
    default: int | None = None,
) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    assert text is not None
    if text.strip().isdecimal() and least <= int(text) <= (int(text) if most is None else most):
        return int(text)
    between = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise SettingError(
        f"{name} must be a whole number {between}; got {text!r}. torchrun sets it; to train by one "
        "process, unset WORLD_SIZE."
    )


def is_launched() -> bool:
    """Whether ``launch`` has started this process."""
    return LAUNCHED in os.environ


def check_processes(processes: int) -> None:
    """Raise unless so many processes can be started from here.

    Raises:
        SettingError: There would be none; or ours is one of several already.

    Example:
        >>> check_processes(0)
        Traceback (most recent call last):
        regard.errors.SettingError: --processes must be at least 1; got 0.
    """
    if processes < 1:
        raise SettingError(f"--processes must be at least 1; got {processes}.")
    if find_rank() is not None:
        raise SettingError(
            f"--processes must be left out under torchrun, which starts them; got {processes}."
        )


def launch(arguments: Sequence[str], processes: int) -> int:
    """Run ``regard`` by several processes of this machine; what to exit with.

    A signal is passed on to all. Where one fails or is killed, the others get some time to save
    what they have, and are ended.

    Args:
        arguments: The command line, without the program's name.
        processes: How many.

    Raises:
        TrainingError: One was ended by a signal that we did not pass on.
    """
    started: list[subprocess.Popen[bytes]] = []
    passed: list[int] = []
    try:
        with _passing_on(started, passed):
            for place in _environments(processes):
                command = [sys.executable, "-m", "regard", *arguments]
                # In sessions of their own, or Ctrl-C would reach them twice.
                started.append(subprocess.Popen(command, env=place, start_new_session=True))
            failed = _wait(started)
    finally:
        _end(started, is_asked=bool(passed))
    if failed is None:
        return 0
    code = started[failed].returncode
    if code >= 0 or passed:
        return code if code >= 0 else 128 - code
    raise TrainingError(
        f"all {processes} processes must stay to the end of a training; got process {failed} ended "
        f"by {signal.Signals(-code).name}{_suspicion(-code)}. What is saved is kept: the same "
        "command goes on with it."
    )


def _suspicion(number: int) -> str:
    return ", perhaps by the system for its memory" if number == signal.SIGKILL else ""


def _environments(processes: int) -> Iterator[dict[str, str]]:
    """Environment of each process."""
    threads = max(1, len(os.sched_getaffinity(0)) // processes) if _CAN_COUNT else 1
    shared = {
        "OMP_NUM_THREADS": str(threads),
        # Torch's own words on closed connections, many lines of them, tell nobody anything.
        "TORCH_CPP_LOG_LEVEL": "FATAL",
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        LAUNCHED: "1",
    }
    for rank in range(processes):
        yield {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}


_CAN_COUNT = hasattr(os, "sched_getaffinity")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _passing_on(started: Sequence[subprocess.Popen[bytes]], passed: list[int]) -> Iterator[None]:
    """Pass signals on to processes inside the block, and note which."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        passed.append(number)
        for each in started:
            with suppress(ProcessLookupError):
                each.send_signal(number)

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """The process that failed first; None if all ended well."""
    while True:
        codes = [each.poll() for each in started]
        failed = [place for place, code in enumerate(codes) if code]
        if failed:
            # Those that a signal ended say nothing for themselves.
            return min(failed, key=lambda place: (codes[place] or 0) > 0)
        if None not in codes:
            return None
        time.sleep(_LOOK_EVERY)


def _end(started: Sequence[subprocess.Popen[bytes]], *, is_asked: bool) -> None:
    """See to it that all processes are gone: first by themselves, then asked, then by force."""
    if not is_asked:  # being asked twice they would not save
        _await(started, _BY_THEMSELVES)
        for each in started:
            if each.poll() is None:
                each.terminate()
    _await(started, _ONCE_ASKED)
    for each in started:
        if each.poll() is None:
            each.kill()
        each.wait()


def _await(started: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    until = time.monotonic() + seconds
    while any(each.poll() is None for each in started) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)
