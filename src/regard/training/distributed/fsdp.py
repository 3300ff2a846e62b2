"""Fully sharded data parallelism: weights, gradients and optimizer are split over processes.

A layer's weights are gathered when a batch reaches it, and its gradients reduced and scattered when
they are known: Zhao et al. (2023), https://arxiv.org/abs/2304.11277, by torch's ``fully_shard``
(FSDP2). Checkpoints hold full tensors, in the same files as without it.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.utils import get_total_norm

from regard.layers.block import TransformerBlock
from regard.training.distributed.world import World, lost_process_errors
from regard.training.optimization import Optimizers

_FULL = StateDictOptions(full_state_dict=True)


class FSDP:
    """A model sharded over processes, which call a method together: a sharded copy learns."""

    is_sharded = True
    reduced: Sequence[nn.Parameter] = ()  # FSDP reduces gradients in the backward pass

    def __init__(self, model: nn.Module, world: World, device: torch.device) -> None:
        self.model, self.learner = model, deepcopy(model)
        # It is about sums in place, of which the layers make none with what others give them.
        warnings.filterwarnings("ignore", r"FSDP2-wrapped module .* returned a view", UserWarning)
        group = world.group or dist.group.WORLD
        assert group is not None
        mesh = DeviceMesh.from_group(group, device.type)
        for part in list(self.learner.modules()):
            if isinstance(part, TransformerBlock):
                fully_shard(_units(part), mesh=mesh)
        # Of the model itself are the tables, which the logits take after its forward, too.
        fully_shard(self.learner, mesh=mesh, reshard_after_forward=False)
        for part in self.learner.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)  # sums, not means
                part.set_force_sum_reduction_for_comms(True)

    def load_weights(self) -> None:
        """Copy the weights of the model into the learner."""
        with lost_process_errors():
            set_model_state_dict(self.learner, self.model.state_dict(), options=_FULL)

    def store_weights(self) -> None:
        """Copy the weights of the learner into the model."""
        with lost_process_errors():
            self.model.load_state_dict(get_model_state_dict(self.learner, options=_FULL))

    def state(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The full weights and the full state of the optimizer."""
        self.store_weights()
        with lost_process_errors():
            state = get_optimizer_state_dict(self.learner, optimizer.parts, options=_FULL)
        numbers = {name: number for number, name in enumerate(self._names(optimizer))}
        return self.model.state_dict(), _renamed(state, numbers)

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Load the full state of an optimizer."""
        named = _renamed(state, dict(enumerate(self._names(optimizer))))
        with optimizer.restoring(), lost_process_errors():
            set_optimizer_state_dict(self.learner, optimizer.parts, named, options=_FULL)

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""
        with lost_process_errors():
            return float(cast(DTensor, get_total_norm(gradients)).full_tensor())

    def _names(self, optimizer: Optimizers) -> list[str]:
        """Names of the parameters in the optimizer's order, by which checkpoints number them."""
        names = {parameter: name for name, parameter in self.learner.named_parameters()}
        return [names[each] for group in optimizer.param_groups for each in group["params"]]


def _renamed(state: Mapping[str, Any], names: Mapping[Any, Any]) -> dict[str, Any]:
    """A state of an optimizer with its parameters called otherwise."""
    groups = [{**g, "params": [names[each] for each in g["params"]]} for g in state["param_groups"]]
    return {
        "state": {names[each]: values for each, values in state["state"].items()},
        "param_groups": groups,
    }


def _units(layer: TransformerBlock) -> list[nn.Module]:
    """Units of a layer that FSDP gathers and frees together."""
    # A layer with cross-attention projects the memory before it is called; those weights are left
    # to the unit of the model.
    if layer.look is None:
        return [layer]
    looking = [layer.look._modules.get(name) for name in ("query", "output")]
    parts = (layer.attend, *looking, layer.feed)
    return [part for part in parts if part is not None]
