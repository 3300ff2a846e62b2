"""The model that learns: whole in each process, or in parts."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from regard.errors import SettingError
from regard.training.optimizers import Optimizers
from regard.training.ranks import Ranks
from regard.training.settings import TrainingConfig


@runtime_checkable
class Learning(Protocol):
    """Interface of training strategies.

    What needs the others, where each has a part, all processes must ask for together.
    """

    @property
    def is_whole(self) -> bool:
        """Whether each process has all of it."""

    @property
    def learner(self) -> nn.Module:
        """Module that batches pass through."""

    def begin(self) -> None:
        """Learn from the model's weights on."""

    def show(self) -> None:
        """Give the model what was learned so far."""

    def saved(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The weights and the optimizer's state, whole."""

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Go on with an optimizer from the whole of its state."""

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""


class WholeModel:
    """A model that learns itself.

    Args:
        model: It.
    """

    is_whole = True

    def __init__(self, model: nn.Module) -> None:
        self.learner = model

    def begin(self) -> None:
        """Nothing: it has its weights."""

    def show(self) -> None:
        """Nothing: it is what learned."""

    def saved(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Its weights and the optimizer's state."""
        return self.learner.state_dict(), optimizer.state_dict()

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Go on with an optimizer from its state."""
        optimizer.load_state_dict(state)

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""
        return float(get_total_norm(gradients))


def learning(
    model: nn.Module, config: TrainingConfig, ranks: Ranks, device: torch.device
) -> Learning:
    """Training strategy: the whole model, or FSDP shards of it where ``training.shard`` is true."""
    if not config.shard or ranks.is_alone:
        return WholeModel(model)
    from regard.training.sharding import ShardedModel  # what it takes is a second to load

    return ShardedModel(model, ranks, device)


def check_shardable(config: TrainingConfig) -> None:
    """Raise if a training asks for what cannot be done to parts of weights.

    Raises:
        SettingError: It does.
    """
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
