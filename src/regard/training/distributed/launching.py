"""Starts the processes of a training on one machine, and reads the rank of one from torchrun.

Torch is imported by ``launch`` alone, so that errors in a number or the environment are reported at
once.
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from regard.errors import SettingError, TrainingError

# Set in processes that we started: we say what becomes of them.
LAUNCHED = "REGARD_LAUNCHED"
# Seconds between two looks at the processes.
_POLL_EVERY = 0.1
_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class ProcessRank:
    """Rank of a process among several, and among those on its machine."""

    rank: int
    size: int
    local_rank: int
    local_size: int


def find_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank | None:
    """Rank given by ``torchrun``; None for a single process."""
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
    """Raise unless so many processes can be started from here."""
    if processes < 1:
        raise SettingError(f"--processes must be at least 1; got {processes}.")
    if find_rank() is not None:
        raise SettingError(
            f"--processes must be left out under torchrun, which starts them; got {processes}."
        )


def launch(
    arguments: Sequence[str], processes: int, *, program: Sequence[str] = ("-m", "regard")
) -> int:
    """Run ``regard`` by several processes of this machine; the exit status."""
    # A signal is passed on to all. Where one fails or is killed, the others get SIGTERM and half a
    # minute to save.
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in logging.root.manager.loggerDict:  # each of torch's has a level of its own
        if name.startswith("torch.distributed.elastic"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with _restored_signals() as numbers, _environment(processes):
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id="regard",
            rdzv_backend="static",
            rdzv_endpoint=f"127.0.0.1:{_free_port()}",
            rdzv_configs={"rank": 0},
            max_restarts=0,
            monitor_interval=_POLL_EVERY,
            signals_to_handle=",".join(number.name for number in numbers),
        )
        try:
            elastic_launch(config, sys.executable)(*program, *arguments)
        except SignalException as stop:
            return 128 + int(stop.sigval)
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            return _exit_status(codes, processes)
    return 0


def _exit_status(codes: Mapping[int, int], processes: int) -> int:
    """The exit status of the process that failed of itself: the others got SIGTERM for it."""
    killed = {rank: -code for rank, code in codes.items() if code < 0 and -code != signal.SIGTERM}
    if not killed:
        statuses = [code if code >= 0 else 128 - code for _, code in sorted(codes.items())]
        return min(statuses, key=lambda status: status > 128)  # an error goes before a signal
    rank, number = next(iter(killed.items()))
    cause = ", perhaps by the system for its memory" if number == signal.SIGKILL else ""
    raise TrainingError(
        f"all {processes} processes must stay to the end of a training; got process {rank} ended "
        f"by {signal.Signals(number).name}{cause}. What is saved is kept: the same command goes on "
        "with it."
    )


@contextmanager
def _restored_signals() -> Iterator[list[signal.Signals]]:
    """The signals to pass on, of which those that are ignored stay so; handlers are restored."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {signal.Signals[name]: signal.getsignal(signal.Signals[name]) for name in names}
    try:
        yield [number for number, handler in before.items() if handler != signal.SIG_IGN]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _environment(processes: int) -> Iterator[None]:
    """The environment that all processes inherit."""
    added = {
        "OMP_NUM_THREADS": str(max(1, count_cores() // processes)),
        # Torch's own words on closed connections, many lines of them, tell nobody anything.
        "TORCH_CPP_LOG_LEVEL": "FATAL",
        LAUNCHED: "1",
    }
    before = {**os.environ}
    os.environ.update(added | before)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def count_cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
