"""The processes of a training, and their exchanges.

They are started by ``torchrun``, by ``regard train --processes`` (see ``launching``) or by whatever
else sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 alone prints and writes the run
folder.

Objects and numbers go by gloo, gradients on GPUs by NCCL. A process that is killed closes its
connections, which ends the others with :class:`~regard.errors.ProcessLost` at their next exchange.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from signal import SIGTERM
from typing import TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Int64
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from regard.devices.finding import claim_device
from regard.errors import Interrupted, ProcessLost, ReportedElsewhere
from regard.training.distributed.launching import ProcessRank, find_rank, is_launched

T = TypeVar("T")

# The first process may read text or translate for hours while the others wait. One that is gone
# is known by its connections.
_PATIENCE = timedelta(hours=12)
# Until all have started.
_COME_WITHIN = timedelta(minutes=10)
# Gradients are sent in parts of so many bytes, as by torch's own DDP.
_BUCKET = 25 * 2**20
# Keys of the store: the first error, and each process's acknowledgement of it.
_FIRST, _ACKNOWLEDGED = "regard/first-error", "regard/acknowledged"
# Seconds in which the others acknowledge; and the variable that says that torchrun has the store.
_ACKNOWLEDGED_WITHIN, _AGENT = 5.0, "TORCHELASTIC_USE_AGENT_STORE"
# Seconds between two polls.
_POLL_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class BatchShard:
    """Shard of each batch for one process; an update has the same examples for any number."""

    # Of the batches of an update, as many as can be dealt out evenly go to one process each, whole;
    # every other one is split into stretches of about as many tokens.

    rank: int = 0
    size: int = 1
    accumulate: int = 1

    @property
    def is_all(self) -> bool:
        """Whether it is everything."""
        return self.size == 1

    def rows(self, batch_index: int, tokens: Int64[np.ndarray, " n"]) -> slice:
        """This process's examples of a batch, by its number in the update and their costs."""
        if batch_index < self.accumulate // self.size * self.size:
            return slice(0, len(tokens) if batch_index % self.size == self.rank else 0)
        cuts = self._cuts(tokens)
        return slice(cuts[self.rank], cuts[self.rank + 1])

    def _cuts(self, tokens: Int64[np.ndarray, " n"]) -> list[int]:
        """The start of each stretch, and the end: nearest to those of equal ones."""
        ends = np.concatenate([[0], np.cumsum(tokens)])
        ideal = ends[-1] * np.arange(self.size + 1) / self.size
        after = np.searchsorted(ends, ideal)
        before = np.maximum(after - 1, 0)
        is_nearer = ideal - ends[before] < ends[after] - ideal
        return [int(cut) for cut in np.where(is_nearer, before, after)]


WHOLE_BATCH = BatchShard()


@dataclass(frozen=True)
class World(ProcessRank):
    """The processes of a training; ``group`` exchanges gradients, None by the default group."""

    group: dist.ProcessGroup | None = None

    @property
    def is_single(self) -> bool:
        """Whether this process trains alone."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this process prints and writes: rank 0."""
        return self.rank == 0

    def on_device(self, device: torch.device) -> "World":
        """The world, with a process group for gradients on a device."""
        backend = None if self.is_single else claim_device(device)
        return self if backend is None else replace(self, group=dist.new_group(backend=backend))

    def broadcast(self, compute: Callable[[], T]) -> T:
        """Broadcast the result of rank 0; the others wait for it."""
        if self.is_single:
            return compute()
        result = [compute() if self.is_first else None]
        with lost_process_errors():
            dist.broadcast_object_list(result, src=0)
        return cast(T, result[0])

    def gather(self, mine: T) -> list[T]:
        """Gather the values of all processes, by rank."""
        if self.is_single:
            return [mine]
        values: list[T | None] = [None] * self.size
        with lost_process_errors():
            dist.all_gather_object(values, mine)
        return cast("list[T]", values)

    def sum(self, mine: Sequence[float]) -> list[float]:
        """Numbers summed over all processes, in float64."""
        if self.is_single:
            return list(mine)
        totals = torch.tensor(mine, dtype=torch.float64)
        with lost_process_errors():
            dist.all_reduce(totals)
        return cast("list[float]", totals.tolist())

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Sum each tensor over all processes, in process; all must have the same ones."""
        if self.is_single:
            return
        with lost_process_errors():
            pending = []
            for bucket in _buckets(tensors):
                flat = torch.cat([tensor.flatten() for tensor in bucket])
                pending.append(
                    (bucket, flat, dist.all_reduce(flat, group=self.group, async_op=True))
                )
            for bucket, flat, work in pending:
                assert work is not None
                work.wait()
                parts = torch.split(flat, [tensor.numel() for tensor in bucket])
                views = [part.view_as(to) for part, to in zip(parts, bucket, strict=True)]
                torch._foreach_copy_(bucket, views)

    @torch.no_grad()
    def broadcast_weights(self, model: nn.Module) -> None:
        """Broadcast the weights of rank 0: processors of other kinds may draw others."""
        if self.is_single:
            return
        with lost_process_errors():
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    dist.broadcast(tensor.detach(), src=0, group=self.group)


SINGLE_PROCESS = World()


@contextmanager
def process_group() -> Iterator[World]:
    """The world of this process inside the block; an error in one process ends the others."""
    # It is raised where it came first, and ReportedElsewhere everywhere else. All but rank 0 are
    # silent inside the block.
    process = find_rank()
    if process is None or dist.is_initialized():
        yield SINGLE_PROCESS if process is None else World(**asdict(process))
        return
    _init(process)
    monitor = _Monitor(process.rank)
    monitor.start()
    try:
        with ExitStack() as stack:
            if process.rank:
                nowhere = stack.enter_context(Path(os.devnull).open("w"))
                stack.enter_context(redirect_stderr(nowhere))
            yield World(**asdict(process))
            with lost_process_errors():
                dist.barrier()
    except BaseException as error:
        _raise_first(error, process, monitor)
    finally:
        monitor.is_over.set()
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _init(process: ProcessRank) -> None:
    # A prefix of this start's store keys, since torchrun may keep those of an earlier start. On one
    # machine it keeps them when it starts processes again. On several it makes a new store, and
    # counts the starts of each machine apart.
    is_one = process.local_size == process.size
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "") if is_one else ""
    try:
        store, _, _ = next(iter(rendezvous("env://", timeout=_COME_WITHIN)))
        dist.init_process_group(
            "gloo",
            store=PrefixStore(f"regard{start}", store),
            rank=process.rank,
            world_size=process.size,
            timeout=_PATIENCE,
        )
    except (dist.DistError, RuntimeError) as error:
        address, port = (os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT"))
        message = str(error).strip().splitlines()[0]
        raise ProcessLost(
            f"all {process.size} processes must come to {address}:{port} within "
            f"{_COME_WITHIN.seconds // 60} minutes; torch says: {message}"
        ) from error


@contextmanager
def lost_process_errors() -> Iterator[None]:
    """Convert torch's errors of a process that cannot be reached any more into ours."""
    try:
        yield
    except dist.DistError as error:
        raise _lost() from error
    except RuntimeError as error:
        if "gloo" not in str(error).lower() and "connection" not in str(error).lower():
            raise
        raise _lost() from error


def _lost() -> ProcessLost:
    return ProcessLost(
        "all processes must stay to the end of a training; one is gone, perhaps ended by the "
        "system for its memory. What is saved is kept: the same command goes on with it."
    )


class _Monitor(threading.Thread):
    """Polls whether the parent process lives, and whether another process has reported an error."""

    def __init__(self, rank: int) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.first_error: str | None = None
        self._rank, self._parent = rank, os.getppid()
        self._store = dist.distributed_c10d._get_default_store()

    def run(self) -> None:
        """Poll. Where the parent is gone this process gets SIGTERM."""
        while not self.is_over.wait(_POLL_EVERY):
            if os.getppid() != self._parent:
                os.kill(os.getpid(), SIGTERM)
                return
            if self.first_error is None:
                with suppress(RuntimeError):  # the store is gone, as the next exchange will tell
                    if self._store.check([_FIRST]):
                        self._acknowledge(self._store.get(_FIRST).decode())

    def report(self, mine: str) -> str:
        """Report an error if no process has; the first error."""
        first: str = self._store.compare_set(_FIRST, "", mine).decode()
        self._acknowledge(first)
        return first

    def wait_for(self, size: int) -> None:
        """Wait until all others have acknowledged the error; killed ones never will."""
        keys = [f"{_ACKNOWLEDGED}{rank}" for rank in range(size) if rank != self._rank]
        until = time.monotonic() + _ACKNOWLEDGED_WITHIN
        while not self._store.check(keys) and time.monotonic() < until:
            time.sleep(0.02)

    def _acknowledge(self, error: str) -> None:
        self.first_error = error
        self._store.set(f"{_ACKNOWLEDGED}{self._rank}", "")


def _raise_first(error: BaseException, process: ProcessRank, monitor: _Monitor) -> None:
    """Raise an error if it is the first of all processes; a requested stop, in each of them."""
    signal = error.signal_number if isinstance(error, Interrupted) else 0
    launched = is_launched()  # by a launcher that reports which process was killed
    mine = f"{process.rank} {signal}"
    try:
        # Before its connections close, which fails the others.
        first = monitor.report(mine)
        if process.rank == 0 and not launched and _AGENT not in os.environ:
            monitor.wait_for(process.size)  # this process has the store
    except RuntimeError:  # the store was that of rank 0, which is gone
        is_ours = not launched and (process.rank == 1 or not isinstance(error, ProcessLost))
        first = monitor.first_error or (mine if is_ours else "0 0")
    if signal or (first == mine and not (isinstance(error, ProcessLost) and launched)):
        raise error
    requested = int(first.partition(" ")[2])
    raise (
        Interrupted(requested) if requested else ReportedElsewhere("Another process has failed.")
    ) from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors in their order, in groups of one dtype and of no more than a bucket's bytes."""
    bucket: list[Tensor] = []
    room = _BUCKET
    for tensor in tensors:
        if bucket and (tensor.nbytes > room or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, room = [], _BUCKET
        bucket.append(tensor)
        room -= tensor.nbytes
    if bucket:
        yield bucket
