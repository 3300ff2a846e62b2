"""Training strategies: a model on one device, replicated over processes, or sharded by FSDP."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from regard.errors import SettingError
from regard.training.distributed.world import World
from regard.training.optimization import Optimizers
from regard.training.settings import TrainingConfig


class Strategy(ABC):
    """A model in training; where weights are sharded, all processes must call a method together."""

    learner: nn.Module
    is_sharded: bool

    @property
    @abstractmethod
    def reduced(self) -> Sequence[nn.Parameter]:
        """Parameters whose gradients are summed over processes after the backward pass."""

    @abstractmethod
    def load_weights(self) -> None:
        """Copy the weights of the model into the learner."""

    @abstractmethod
    def store_weights(self) -> None:
        """Copy the weights of the learner into the model."""

    @abstractmethod
    def state(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The full weights and the full state of the optimizer."""

    @abstractmethod
    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Load the full state of an optimizer."""

    @abstractmethod
    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""


class _Replica(Strategy):
    """A model that this process has whole: the learner is the model."""

    is_sharded = False

    def __init__(self, model: nn.Module) -> None:
        self.learner = model

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


class SingleDevice(_Replica):
    """A model that one process trains."""

    @property
    def reduced(self) -> Sequence[nn.Parameter]:
        """None: there is no other process."""
        return ()


class DataParallel(_Replica):
    """A replica of a model that several processes train."""

    @property
    def reduced(self) -> Sequence[nn.Parameter]:
        """All trained parameters."""
        return [parameter for parameter in self.learner.parameters() if parameter.requires_grad]


def choose_strategy(
    model: nn.Module, config: TrainingConfig, world: World, device: torch.device
) -> Strategy:
    """The strategy for a world; ``training.shard`` chooses FSDP among several processes."""
    if world.is_single:
        return SingleDevice(model)
    if not config.shard:
        return DataParallel(model)
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
            allowed = " or ".join("none" if each is None else str(each).lower() for each in may_be)
            got = "true" if value is True else repr(value)
            raise SettingError(
                f"training.{name} must be {allowed} where training.shard is true, since each "
                f"process has parts of the weights only; got {got}."
            )
