"""The processes that train one model together: who is among them, and what they tell each other.

They are started by ``torchrun``, by ``regard train --processes`` (see ``launching``) or by whatever
else sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Each is called by its rank, from 0; the
first alone prints and writes the run folder.

Numbers and words go by gloo, gradients on GPUs by NCCL. A process that is killed closes its
connections: what the others next ask of it ends them, with :class:`~regard.errors.ProcessLost`.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from signal import SIGTERM
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from regard.devices import claim_device
from regard.errors import Interrupted, ProcessLost, ReportedElsewhere
from regard.training.launching import LAUNCHED, Place, find_place
from regard.training.shares import Share

T = TypeVar("T")

# The first process may read text or translate for hours while the others wait. One that is gone
# is known by its connections.
_PATIENCE = timedelta(hours=12)
# Until all have started.
_COME_WITHIN = timedelta(minutes=10)
# Gradients are sent in parts of so many bytes, as by torch's own DDP.
_BUCKET = 25 * 2**20
# Where the first process that has something to say of an error notes that it does, and where each
# notes that it knows.
_SAID, _KNOWN = "regard/said", "regard/known"
# Seconds in which the others look; and what is set where torchrun has the store of such notes.
_KNOWN_WITHIN, _AGENT = 5.0, "TORCHELASTIC_USE_AGENT_STORE"
# Seconds between two looks at whoever started us, and at those notes.
_LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Ranks:
    """The processes of a training, as one of them sees them.

    Attributes:
        rank: Which one this is, from 0.
        size: How many there are.
        local_rank: Which one it is of those on this machine.
        local_size: How many those are.
        group: What gradients go by; None is what words go by.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    group: dist.ProcessGroup | None = None

    @property
    def is_alone(self) -> bool:
        """Whether there is no other."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that prints and writes."""
        return self.rank == 0

    def share(self, accumulate: int) -> Share:
        """Shard of each batch for this process, where so many make an update."""
        return Share(self.rank, self.size, accumulate)

    def on(self, device: torch.device) -> "Ranks":
        """Ranks whose gradients are exchanged from a device."""
        backend = None if self.is_alone else claim_device(device)
        return self if backend is None else replace(self, group=dist.new_group(backend=backend))

    def from_first(self, find: Callable[[], T]) -> T:
        """Broadcast the result of the first process; the others wait for it."""
        if self.is_alone:
            return find()
        found = [find() if self.is_first else None]
        with lost_told():
            dist.broadcast_object_list(found, src=0)
        return cast(T, found[0])

    def all(self, mine: T) -> list[T]:
        """Gather the values of all processes, by rank."""
        if self.is_alone:
            return [mine]
        found: list[T | None] = [None] * self.size
        with lost_told():
            dist.all_gather_object(found, mine)
        return cast("list[T]", found)

    def sums(self, mine: Sequence[float]) -> list[float]:
        """Numbers summed over all processes, in float64."""
        if self.is_alone:
            return list(mine)
        together = torch.tensor(mine, dtype=torch.float64)
        with lost_told():
            dist.all_reduce(together)
        return cast("list[float]", together.tolist())

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Sum each tensor over all processes, in place; all must have the same ones."""
        if self.is_alone:
            return
        with lost_told():
            flying = []
            for bucket in _buckets(tensors):
                flat = torch.cat([tensor.flatten() for tensor in bucket])
                flying.append(
                    (bucket, flat, dist.all_reduce(flat, group=self.group, async_op=True))
                )
            for bucket, flat, work in flying:
                assert work is not None
                work.wait()
                parts = torch.split(flat, [tensor.numel() for tensor in bucket])
                views = [part.view_as(to) for part, to in zip(parts, bucket, strict=True)]
                torch._foreach_copy_(bucket, views)

    @torch.no_grad()
    def begin_alike(self, model: nn.Module) -> None:
        """Give all the weights of the first: processors of other kinds may draw others."""
        if self.is_alone:
            return
        with lost_told():
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    dist.broadcast(tensor.detach(), src=0, group=self.group)


ALONE = Ranks()


@contextmanager
def joined() -> Iterator[Ranks]:
    """The processes that this one was started with, inside the block: :data:`ALONE` if by itself.

    What goes wrong in one ends the others. It is raised where it was first, and everywhere else
    :class:`~regard.errors.ReportedElsewhere`. All but the first are silent inside the block.

    Raises:
        SettingError: The environment tells of processes, but not what has to be known.
        ProcessLost: Another one is gone, and has not said why.
        ReportedElsewhere: Another one has said what ends them all.
    """
    place = find_place()
    if place is None or dist.is_initialized():
        yield ALONE if place is None else _ranks(place)
        return
    _join(place)
    watch = _Watch(place.rank)
    watch.start()
    try:
        with ExitStack() as stack:
            if place.rank:
                nowhere = stack.enter_context(Path(os.devnull).open("w"))
                stack.enter_context(redirect_stderr(nowhere))
            yield _ranks(place)
            with lost_told():
                dist.barrier()
    except BaseException as error:
        _raise_once(error, place, watch)
    finally:
        watch.is_over.set()
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _join(place: Place) -> None:
    """Meet the others.

    Raises:
        ProcessLost: Some did not come.
    """
    try:
        store, _, _ = next(iter(rendezvous("env://", timeout=_COME_WITHIN)))
        dist.init_process_group(
            "gloo",
            store=PrefixStore(f"regard{_attempt(place)}", store),
            rank=place.rank,
            world_size=place.size,
            timeout=_PATIENCE,
        )
    except (dist.DistError, RuntimeError) as error:
        address, port = (os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT"))
        said = str(error).strip().splitlines()[0]
        raise ProcessLost(
            f"all {place.size} processes must come to {address}:{port} within "
            f"{_COME_WITHIN.seconds // 60} minutes; torch says: {said}"
        ) from error


def _attempt(place: Place) -> str:
    """Prefix of this start's store keys; torchrun may keep those of an earlier start.

    On one machine it keeps them when it starts processes again. On several it makes a new store,
    and counts the starts of each machine apart.
    """
    is_one = place.local_size == place.size
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "") if is_one else ""


@contextmanager
def lost_told() -> Iterator[None]:
    """Convert torch's errors of a process that cannot be reached any more into ours.

    Raises:
        ProcessLost: One is gone.
    """
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


def _ranks(place: Place) -> Ranks:
    return Ranks(place.rank, place.size, place.local_rank, place.local_size)


class _Watch(threading.Thread):
    """Looks now and then whether whoever started us is there, and what another process has said.

    Attributes:
        is_over: Set when there is nothing to look for any more.
        said: What ends all, by whoever knew it first; None is nothing yet.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.said: str | None = None
        self._rank, self._parent = rank, os.getppid()
        self._store = dist.distributed_c10d._get_default_store()

    def run(self) -> None:
        """Look. This process is ended, as if asked to, where whoever started it is gone."""
        while not self.is_over.wait(_LOOK_EVERY):
            if os.getppid() != self._parent:
                os.kill(os.getpid(), SIGTERM)
                return
            if self.said is None:
                with suppress(RuntimeError):  # the store is gone, and we shall hear of it
                    self._look()

    def tell(self, mine: str) -> str:
        """Say what ends all, if nobody has; what was said.

        Raises:
            RuntimeError: The store was the first process's, which is gone.
        """
        said: str = self._store.compare_set(_SAID, "", mine).decode()
        self._know(said)
        return said

    def wait_for(self, size: int) -> None:
        """Wait until all of the others know; those that were killed never will."""
        others = [f"{_KNOWN}{rank}" for rank in range(size) if rank != self._rank]
        until = time.monotonic() + _KNOWN_WITHIN
        while not self._store.check(others) and time.monotonic() < until:
            time.sleep(0.02)

    def _look(self) -> None:
        if self._store.check([_SAID]):
            self._know(self._store.get(_SAID).decode())

    def _know(self, said: str) -> None:
        self.said = said
        self._store.set(f"{_KNOWN}{self._rank}", "")


def _raise_once(error: BaseException, place: Place, watch: _Watch) -> None:
    """Raise an error if no other process has told of one; a stop that was asked for, anywhere."""
    signal = error.signal_number if isinstance(error, Interrupted) else 0
    is_launched = LAUNCHED in os.environ  # and whoever launched us says what became of whom
    mine = f"{place.rank} {signal}"
    try:
        # A process says so before its connections close, which is how the others learn of it.
        said = watch.tell(mine)
        if place.rank == 0 and not is_launched and _AGENT not in os.environ:
            watch.wait_for(place.size)  # the store is ours: the others look there who has said so
    except RuntimeError:  # the store was the first process's, which is gone
        is_ours = not is_launched and (place.rank == 1 or not isinstance(error, ProcessLost))
        said = watch.said or (mine if is_ours else "0 0")
    if signal or (said == mine and not (isinstance(error, ProcessLost) and is_launched)):
        raise error
    asked = int(said.partition(" ")[2])
    raise (
        Interrupted(asked) if asked else ReportedElsewhere("Another process has failed.")
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
