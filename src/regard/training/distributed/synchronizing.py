"""Processes that train together: their strategy, their agreement at the start, their sums."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from regard.errors import RunError, SettingError
from regard.layers.residual import BatchNorm
from regard.runs.card import CARD_FILE
from regard.runs.files import checksum
from regard.tasks import Recipe
from regard.training.callbacks import WAITING
from regard.training.continuing import differences
from regard.training.distributed.world import World
from regard.training.optimization import Optimizers
from regard.training.settings import TrainingConfig
from regard.version import __version__

if TYPE_CHECKING:
    from regard.training.distributed.fsdp import FSDP

# Seconds until a file of one machine is seen from another: NFS looks as seldom as that.
_VISIBLE_WITHIN, _LOOK_EVERY = 60.0, 0.5


class DataParallel:
    """A model that this process has whole, alone or as one of several: the learner is the model."""

    is_sharded = False

    def __init__(self, model: nn.Module, *, is_single: bool) -> None:
        self.learner = model
        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # Parameters whose gradients are summed over processes after the backward pass.
        self.reduced = [] if is_single else learned

    def load_weights(self) -> None:
        """Nothing: learner and model are one."""

    def store_weights(self) -> None:
        """Nothing: learner and model are one."""

    def state(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The weights and the state of the optimizer."""
        return self.learner.state_dict(), optimizer.state_dict()

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Load the state of an optimizer."""
        optimizer.load_state_dict(state)

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""
        return float(get_total_norm(gradients))


def choose_strategy(
    model: nn.Module, config: TrainingConfig, world: World, device: torch.device
) -> "DataParallel | FSDP":
    """The strategy for a world; ``training.shard`` chooses FSDP among several processes."""
    if world.is_single or not config.shard:
        return DataParallel(model, is_single=world.is_single)
    from regard.training.distributed.fsdp import FSDP  # its imports take a second

    return FSDP(model, world, device)


def check_shardable(config: TrainingConfig) -> None:
    """Raise if a setting cannot be combined with sharded weights."""
    for name, value, may_be in (
        ("optimizer", config.optimizer, ("adamw", "sgd")),
        ("ema", config.ema, (None,)),
        ("compile", config.compile, (False,)),
    ):
        if value not in may_be:
            allowed = " or ".join(
                "none" if choice is None else str(choice).lower() for choice in may_be
            )
            got = "true" if value is True else repr(value)
            raise SettingError(
                f"training.{name} must be {allowed} where training.shard is true, since each "
                f"process has parts of the weights only; got {got}."
            )


def check_agreement(world: World, recipe: Recipe) -> None:
    """Raise unless all processes train by the same recipe and the same program."""
    if world.is_single:
        return
    mine = {
        **recipe.table(),
        "the version of regard": __version__,
        "the version of torch": torch.__version__,
        "the program of regard": _program(),
    }
    first, *following = world.gather(mine)
    for rank, settings in enumerate(following, 1):
        for name, (theirs, ours) in differences(settings, first).items():
            raise SettingError(
                f"{name} must be the same in all processes; got {ours!r} in process 0 and "
                f"{theirs!r} in process {rank}. Start all by the same command."
            )


def check_folder(world: World, path: Path) -> None:
    """Wait for the first process to have made the run, and for the others to see it."""
    if world.is_single:
        return
    card = path / CARD_FILE
    made = world.broadcast(lambda: checksum(card.read_bytes()))
    until = time.monotonic() + _VISIBLE_WITHIN
    while not (card.exists() and checksum(card.read_bytes()) == made):
        if time.monotonic() > until:
            raise RunError(
                f"{path} must be a folder that all processes see; process {world.rank} does not "
                "see what process 0 has written there. Put it on a disk that the machines share."
            )
        time.sleep(_LOOK_EVERY)


def check_shared(
    world: World, model: nn.Module, config: TrainingConfig, examples_a_batch: float
) -> None:
    """Raise unless so many processes can learn from a batch together."""
    if world.is_single:
        return
    if config.shard:
        check_shardable(config)
    examples = examples_a_batch * config.accumulate
    if examples < world.size:
        raise SettingError(
            f"training.batch_tokens must give each of {world.size} processes an example; got "
            f"batches of {config.batch_tokens} tokens, {examples_a_batch:.1f} examples in the mean."
            " Take fewer processes, or larger batches."
        )
    if any(
        isinstance(part, BatchNorm | nn.modules.batchnorm._BatchNorm) for part in model.modules()
    ):
        raise SettingError(
            f"model.norm_kind must be layer or rms where {world.size} processes train, each of "
            "which sees a part of a batch; got 'batch'."
        )


@cache
def _program() -> str:
    """Fingerprint of this program."""
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    lines = "".join(f"{file.relative_to(folder)} {checksum(file.read_bytes())}" for file in files)
    return checksum(lines.encode())[:12]


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
        self._started_at = self._counted = 0.0
        self._tail, self._waited, self._waiting_share, self._agreed = 0.0, 0.0, 0.0, 0.0

    def begin(self, update: int) -> None:
        """Begin an update, whose random numbers depend on seed, rank and update alone."""
        self._started_at = self._counted = time.perf_counter()
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
        loss, all_terms, *raised, self._agreed = sums[: len(mine)]
        waited = sums[len(mine) : len(mine) + len(waited)]
        named = {f"{WAITING}{rank}": share for rank, share in enumerate(waited)}
        return UpdateTotals(
            loss, int(all_terms), StopFlags(*(count > 0 for count in raised)), named
        )

    def end(self) -> float:
        """End an update; the seconds it took, the same in all processes."""
        now = time.perf_counter()
        took, self._tail = now - self._started_at, now - self._counted
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
