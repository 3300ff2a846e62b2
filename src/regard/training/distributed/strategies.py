"""Training strategies: a model on one device or replicated over processes, or sharded by FSDP."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from regard.errors import SettingError
from regard.training.distributed.world import World
from regard.training.optimization import Optimizers
from regard.training.settings import TrainingConfig

if TYPE_CHECKING:
    from regard.training.distributed.fsdp import FSDP


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
            allowed = " or ".join("none" if each is None else str(each).lower() for each in may_be)
            got = "true" if value is True else repr(value)
            raise SettingError(
                f"training.{name} must be {allowed} where training.shard is true, since each "
                f"process has parts of the weights only; got {got}."
            )
