"""One update of several processes: sums of gradients and losses, stop flags, waiting times."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.training.callbacks import WAITING
from regard.training.distributed.world import World


class StopFlags(NamedTuple):
    """Reasons to stop or save after an update: a signal, the clock, a callback."""

    must_leave: bool = False
    must_save: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class UpdateTotals:
    """Totals of an update over all processes, and the fraction of it that each waited."""

    loss: float
    terms: int
    flags: StopFlags
    waiting: Mapping[str, float] = field(default_factory=dict)


class Synchronizer:
    """Sums gradients over data-parallel workers; a no-op for one worker."""

    # Torch's DDP reduces gradients during the backward pass. Here a batch takes several passes, one
    # for each chunk of its logits, uses weights outside of a model's ``forward``, and may leave a
    # process without a shard. So gradients are reduced when they are complete, in buckets that are
    # the same in every update, or a resumed run would round otherwise.

    def __init__(self, world: World, parameters: Sequence[nn.Parameter], *, seed: int) -> None:
        self.world, self.parameters, self._seed = world, parameters, seed
        self._begun = self._counted = 0.0
        self._tail, self._waited, self._waiting_share, self._agreed = 0.0, 0.0, 0.0, 0.0

    def begin(self, update: int) -> None:
        """Begin an update, whose random numbers depend on seed, rank and update alone."""
        self._begun = self._counted = time.perf_counter()
        if not self.world.is_single:
            seeds = np.random.SeedSequence([self._seed, self.world.rank, update])
            torch.manual_seed(int(seeds.generate_state(1)[0]))

    def add(self, loss: float, terms: int, *, flags: StopFlags) -> UpdateTotals:
        """Sum gradients, losses and flags over the processes."""
        world = self.world
        if world.is_single:
            return UpdateTotals(loss, terms, flags)
        waited = [0.0] * world.size
        waited[world.rank] = self._waiting_share
        has = [float(parameter.grad is not None) for parameter in self.parameters]
        mine = [loss, float(terms), *map(float, flags), self._spent()]
        started = time.perf_counter()
        sums = world.sum([*mine, *waited, *has])
        world.all_reduce(self._gradients(sums[len(mine) + len(waited) :]))
        self._waited = time.perf_counter() - started
        loss, all_terms, *given, self._agreed = sums[: len(mine)]
        waited = sums[len(mine) : len(mine) + len(waited)]
        named = {f"{WAITING}{rank}": share for rank, share in enumerate(waited)}
        return UpdateTotals(loss, int(all_terms), StopFlags(*(count > 0 for count in given)), named)

    def end(self) -> float:
        """End an update; the seconds it took, the same in all processes."""
        now = time.perf_counter()
        took, self._tail = now - self._begun, now - self._counted
        self._waiting_share = self._waited / max(took, 1e-9)
        return took if self.world.is_single else self._agreed

    def _spent(self) -> float:
        """Seconds in updates since the last call; those of rank 0 count for all."""
        if not self.world.is_first:
            return 0.0
        now = time.perf_counter()
        spent, self._counted = self._tail + now - self._counted, now
        return spent

    def _gradients(self, counts: Sequence[float]) -> list[Tensor]:
        """The gradients that any process has; zeros where this one has none."""
        gradients = []
        for parameter, count in zip(self.parameters, counts, strict=True):
            if count:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        return gradients
