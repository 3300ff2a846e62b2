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

# Set to our process id in the processes that we started, whose end we report.
LAUNCHED = "REGARD_LAUNCHED"
# Seconds between two looks at the processes.
_POLL_EVERY = 0.1
_WORKER = "regard.training.distributed.worker"
_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class ProcessRank:
    """Rank of a process among several, and among those on its machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


def find_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank | None:
    """Rank given by ``torchrun``; None for a single process."""
    values = {name: environment.get(name, "") for name in _NAMES}
    if values["WORLD_SIZE"] in ("", "1"):
        return None
    try:
        rank, size = int(values["RANK"]), int(values["WORLD_SIZE"])
        local_rank = int(environment.get("LOCAL_RANK", rank))
        local_size = int(environment.get("LOCAL_WORLD_SIZE", size))
    except ValueError:
        rank = size = local_rank = local_size = 0
    if not (0 <= rank < size and 0 <= local_rank < local_size and all(values.values())):
        given = ", ".join(f"{name}={value or 'nothing'}" for name, value in values.items())
        raise SettingError(
            f"{', '.join(_NAMES)} must be as torchrun sets them; got {given}. To train by one "
            "process, unset WORLD_SIZE."
        )
    return ProcessRank(rank, size, local_rank, local_size)


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
    if processes > (cores := count_cores()):
        import torch

        gpus = torch.cuda.device_count()
        if processes > gpus:
            most = f"{gpus}, the GPUs" if gpus > cores else f"{cores}, the processors"
            raise SettingError(
                f"--processes must be at most {most} that this process may use; got {processes}."
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
            elastic_launch(config, sys.executable)("-m", _WORKER, *program, *arguments)
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
        LAUNCHED: str(os.getpid()),
    }
    before = {**os.environ}
    os.environ.update(added | before)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def count_cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
