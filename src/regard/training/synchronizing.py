"""One update by several processes: what each has learned, added up, and who waited for whom."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.training.progress import WAITING
from regard.training.ranks import Ranks


class Signs(NamedTuple):
    """Stop flags of a process after an update.

    Attributes:
        must_leave: It was asked to stop.
        must_save: It is time to save.
        is_over: Training is to end.
    """

    must_leave: bool = False
    must_save: bool = False
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Learned:
    """Totals of an update over all processes.

    Attributes:
        loss: Summed over the terms.
        terms: How many there are.
        signs: What any of the processes would have all do.
        waiting: By the name of a figure, which share of the update before each process waited.
    """

    loss: float
    terms: int
    signs: Signs
    waiting: Mapping[str, float] = field(default_factory=dict)


class Synchronizer:
    """The updates of several processes, or of one alone, to which nothing is done.

    Torch's DDP adds gradients as a backward pass goes. Here a batch takes several, one for each
    chunk of its logits, and weights outside of a model's ``forward``; and a process may have no
    part of it. So sums are added when they are complete, by as many bytes: in buckets that are the
    same in every update, or one that goes on from a checkpoint would round otherwise.

    Args:
        ranks: The processes.
        parameters: Whose gradients are added.
        seed: Of what each process draws by itself, such as dropout.
    """

    def __init__(self, ranks: Ranks, parameters: Sequence[nn.Parameter], *, seed: int) -> None:
        self.ranks, self.parameters, self._seed = ranks, parameters, seed
        self._begun = self._counted = 0.0
        self._tail, self._waited, self._waiting_share, self._agreed = 0.0, 0.0, 0.0, 0.0

    def begin(self, update: int) -> None:
        """An update begins; what is drawn in it hangs on seed, rank and update alone."""
        self._begun = self._counted = time.perf_counter()
        if not self.ranks.is_alone:
            seeds = np.random.SeedSequence([self._seed, self.ranks.rank, update])
            torch.manual_seed(int(seeds.generate_state(1)[0]))

    def add(self, loss: float, terms: int, *, signs: Signs) -> Learned:
        """Add the others' gradients to ours, and what else an update goes by.

        Args:
            loss: Summed over our terms.
            terms: How many we have.
            signs: What we would have all do.
        """
        ranks = self.ranks
        if ranks.is_alone:
            return Learned(loss, terms, signs)
        waited = [0.0] * ranks.size
        waited[ranks.rank] = self._waiting_share
        has = [float(parameter.grad is not None) for parameter in self.parameters]
        mine = [loss, float(terms), *map(float, signs), self._spent()]
        started = time.perf_counter()
        sums = ranks.sums([*mine, *waited, *has])
        ranks.add(self._gradients(sums[len(mine) + len(waited) :]))
        self._waited = time.perf_counter() - started
        loss, all_terms, *given, self._agreed = sums[: len(mine)]
        waited = sums[len(mine) : len(mine) + len(waited)]
        named = {f"{WAITING}{rank}": share for rank, share in enumerate(waited)}
        return Learned(loss, int(all_terms), Signs(*(count > 0 for count in given)), named)

    def end(self) -> float:
        """An update ends; the seconds it took, the same ones in all processes."""
        now = time.perf_counter()
        took, self._tail = now - self._begun, now - self._counted
        self._waiting_share = self._waited / max(took, 1e-9)
        return took if self.ranks.is_alone else self._agreed

    def _spent(self) -> float:
        """Seconds in updates since this was asked last; the first process's count for all."""
        if not self.ranks.is_first:
            return 0.0
        now = time.perf_counter()
        spent, self._counted = self._tail + now - self._counted, now
        return spent

    def _gradients(self, counts: Sequence[float]) -> list[Tensor]:
        """The gradients of what anybody has a gradient of: zeros where we have none."""
        found = []
        for parameter, count in zip(self.parameters, counts, strict=True):
            if count:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                found.append(parameter.grad)
        return found
