"""Engines of bulk prediction: this process, or workers of Ray Data."""

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import cast

import torch

from regard.errors import Interrupted, RegardError, RunError, SettingError
from regard.inference.bulk.answering import Answerer, BulkOptions, ShardReport
from regard.inference.bulk.shards import Shard

# Answers shards, in whatever order; each is reported when its answers are there.
Engine = Callable[[Path, BulkOptions, Sequence[Shard]], Iterator[ShardReport]]

# Seconds that a cluster has to be reached.
_PATIENCE = 10
# How often Ray is started where it does not.
_ATTEMPTS = 3
_LOOPBACK = "127.0.0.1"
# Environment of Ray: no statistics of its use are sent.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# Variable that makes the loopback the address of this machine, on every system.
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# Only names and numbers go through Ray: files are read by the workers.
_OBJECT_STORE = 100 * 2**20


def local_engine(run: Path, options: BulkOptions, shards: Sequence[Shard]) -> Iterator[ShardReport]:
    """Answers the shards one after the other in this process."""
    threads = torch.get_num_threads()
    answerer = Answerer(run, options)
    try:
        for shard in shards:
            yield answerer.answer(shard)
    finally:
        torch.set_num_threads(threads)


def ray_engine(*, actors: int | None = None, address: str | None = None) -> Engine:
    """Workers of Ray Data, each with a model of its own, which get shards as they are free.

    Args:
        actors: How many workers; None is one for each ``options.threads`` of the processor here, or
            of the cluster.
        address: Of a cluster to join. None starts Ray on this machine, for this process alone: it
            listens on the loopback only, has no dashboard, and tells nobody of its use.

    Raises:
        SettingError: Ray is not installed, or cannot be imported.

    Example:
        An ``engine`` for ``answer_files``; Ray starts when there is something to answer:

        >>> engine = ray_engine(actors=2)
        >>> engine.keywords
        {'actors': 2, 'address': None}
    """
    if find_spec("ray") is None:
        raise SettingError(
            "ray must be installed for --engine ray; it is not. pip install 'regard[bulk]'"
        )
    environment = _ENVIRONMENT if address is not None else {**_ENVIRONMENT, **_ALONE}
    for name, value in environment.items():
        os.environ.setdefault(name, value)
    try:
        import_module("ray.data")
    except Exception as error:  # of a half-installed package it may be anything
        raise SettingError(
            f"ray must be importable for --engine ray; it is installed, and is not: "
            f"{_reason(error)}. Install it again: pip install --force-reinstall 'regard[bulk]'."
        ) from error
    return partial(_on_ray, actors=actors, address=address)


def _on_ray(
    run: Path,
    options: BulkOptions,
    shards: Sequence[Shard],
    *,
    actors: int | None,
    address: str | None,
) -> Iterator[ShardReport]:
    # The largest first, so that no worker is left with one while the others are done.
    ordered = sorted(shards, key=lambda shard: -shard.size)
    with _ray(actors, options.threads, address) as resources:
        import ray.data

        count = actors or max(1, int(resources.get("CPU", 1)) // options.threads)
        count = min(count, len(ordered))
        on_gpu = options.device != "cpu" and resources.get("GPU", 0) >= count
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        work = ray.data.from_items(
            [{"index": index} for index in range(len(ordered))], override_num_blocks=len(ordered)
        )
        answered = work.map(
            _Worker,
            fn_constructor_args=(run.resolve(), options, tuple(ordered)),
            compute=ray.data.ActorPoolStrategy(size=count),
            num_cpus=options.threads,
            num_gpus=1 if on_gpu else None,
        )
        for row in cast(Iterable[Mapping[str, str]], answered.iter_rows()):
            if row["refused"]:
                raise RunError(row["refused"])
            yield ShardReport(**json.loads(row["report"]))


class _Worker:
    """Answers shards in a process of Ray's."""

    def __init__(self, run: Path, options: BulkOptions, shards: Sequence[Shard]) -> None:
        self._shards, self._refused = shards, ""
        try:
            self._answerer = Answerer(run, options)
        except RegardError as error:
            self._refused = str(error)

    def __call__(self, row: Mapping[str, int]) -> dict[str, str]:
        """The report on the shard at an index."""
        refused, report = self._refused, ""
        if not refused:
            try:
                answered = self._answerer.answer(self._shards[int(row["index"])])
                report = json.dumps(asdict(answered))
            except RegardError as error:
                refused = str(error)
        return {"refused": refused, "report": report}


@contextmanager
def _ray(actors: int | None, threads: int, address: str | None) -> Iterator[dict[str, float]]:
    """Ray, as it was, joined, or begun here for as long as the block; its resources."""
    import ray

    if ray.is_initialized():
        yield ray.cluster_resources()
        return
    if address is None:
        # It is read when Ray is imported, which somebody may have done.
        ray_constants = import_module("ray._private.ray_constants")
        ray_constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]
    with _interrupted_by_sigterm() as take_over:
        _begin(actors, threads, address)
        take_over()
        try:
            yield ray.cluster_resources()
        finally:
            ray.shutdown()


@contextmanager
def _interrupted_by_sigterm() -> Iterator[Callable[[], None]]:
    """SIGTERM ends the block by Interrupted: Ray exits with the signal's bare number, 15."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(number)  # no Exception, of which Ray would print where it was

    def take_over() -> None:
        signal.signal(signal.SIGTERM, stop)

    try:
        yield take_over
    except SystemExit as error:
        if error.code == signal.SIGTERM:
            raise Interrupted(signal.SIGTERM) from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _begin(actors: int | None, threads: int, address: str | None) -> None:
    """Join a cluster, or start Ray here."""
    import ray

    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        _check_answers(address)
        try:
            ray.init(address=address, **quiet)
        except Exception as error:  # Ray raises that, too
            raise RunError(_no_cluster(address, _reason(error))) from error
        return
    cores = (actors or max(1, (os.cpu_count() or 1) // threads)) * threads
    for attempt in range(_ATTEMPTS):
        try:
            ray.init(
                address="local",
                num_cpus=cores,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _node_ip_address=_LOOPBACK,
                **quiet,
            )
            return
        except Exception as error:  # Ray gives up after half a minute, which may be too few
            ray.shutdown()
            if attempt + 1 == _ATTEMPTS:
                raise RunError(
                    f"ray must start on this machine; it does not: {_reason(error)}"
                ) from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


def _check_answers(address: str) -> None:
    """Raise RunError if nobody listens at an address with a port, which Ray would wait for long."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # a name, such as ``auto``
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise RunError(_no_cluster(address, str(error))) from error


def _no_cluster(address: str, reason: str) -> str:
    return f"--address must be that of a Ray cluster that answers; got {address!r}: {reason}."
