"""Fully sharded data parallelism: weights, gradients and optimizer are split over processes.

A layer's weights are gathered when a batch reaches it, and its gradients reduced and scattered when
they are known: Zhao et al. (2023), https://arxiv.org/abs/2304.11277, by torch's ``fully_shard``
(FSDP2). Checkpoints hold full tensors, in the same files as without it.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import get_total_norm

from regard.layers.block import TransformerBlock
from regard.training.distributed.world import World, lost_process_errors
from regard.training.optimization import Optimizers


class FSDP:
    """A model sharded over processes, which call a method together: a sharded copy learns."""

    is_sharded = True
    reduced: Sequence[nn.Parameter] = ()  # FSDP reduces gradients in the backward pass

    def __init__(self, model: nn.Module, world: World, device: torch.device) -> None:
        self.model, self.learner = model, deepcopy(model)
        # It is about sums in place, which the layers never make in their inputs.
        warnings.filterwarnings("ignore", r"FSDP2-wrapped module .* returned a view", UserWarning)
        group = world.group or dist.group.WORLD
        assert group is not None
        mesh = DeviceMesh.from_group(group, device.type)
        for part in list(self.learner.modules()):
            if isinstance(part, TransformerBlock):
                fully_shard(_units(part), mesh=mesh)
        # The root's own weights are the tables, which the logits use after its forward, too.
        fully_shard(self.learner, mesh=mesh, reshard_after_forward=False)
        for part in self.learner.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)  # sums, not means
                part.set_force_sum_reduction_for_comms(True)

    @torch.no_grad()
    def load_weights(self) -> None:
        """Copy the weights of the model into the learner."""
        whole = self.model.state_dict()
        for name, parameter in self.learner.named_parameters():
            parameter.copy_(_split(whole[name], parameter))
        for name, buffer in self.learner.named_buffers():
            if name in whole:
                buffer.copy_(whole[name])

    def store_weights(self) -> None:
        """Copy the weights of the learner into the model."""
        self.model.load_state_dict(self._weights())

    def state(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The full weights and the full state of the optimizer."""
        return self._weights(), cast("dict[str, object]", _gathered(optimizer.state_dict()))

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Load the full state of an optimizer."""
        groups = optimizer.param_groups
        parameters = [p for group in groups for p in cast(list[Tensor], group["params"])]
        parameter_states = cast(Mapping[int, Mapping[str, object]], state["state"])
        split = {
            number: {
                name: _split(value, parameters[number])
                if isinstance(value, Tensor) and value.shape == parameters[number].shape
                else value
                for name, value in values.items()
            }
            for number, values in parameter_states.items()
        }
        optimizer.load_state_dict({**state, "state": split})

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""
        return float(cast(Tensor, _gathered(get_total_norm(gradients))))

    def _weights(self) -> dict[str, Tensor]:
        """The full weights; tied ones share a tensor."""
        saved = self.learner.state_dict()
        named = self.learner.named_parameters(remove_duplicate=False)
        tied = {name: id(parameter) for name, parameter in named}
        full: dict[int, Tensor] = {}
        for name, tensor in saved.items():
            key = tied.get(name, id(tensor))
            if key not in full:
                full[key] = cast(Tensor, _gathered(tensor))
        return {name: full[tied.get(name, id(tensor))] for name, tensor in saved.items()}


def _units(layer: TransformerBlock) -> list[nn.Module]:
    """Units of a layer that FSDP gathers and frees together."""
    # A layer with cross-attention projects the memory before it is called; those weights are left
    # to the unit of the model.
    if layer.cross_attend is None:
        return [layer]
    cross = [layer.cross_attend._modules.get(name) for name in ("query", "output")]
    parts = (layer.attend, *cross, layer.feed)
    return [part for part in parts if part is not None]


def _split(whole: Tensor, like: Tensor) -> Tensor:
    if not isinstance(like, DTensor):
        return whole
    with lost_process_errors():
        return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements)


def _gathered(value: object) -> object:
    """The full tensor of a sharded one, or of each in a mapping, in the same order everywhere."""
    if isinstance(value, Mapping):
        return {key: _gathered(item) for key, item in value.items()}
    if not isinstance(value, DTensor):
        return value
    with lost_process_errors():
        return cast(DTensor, value.detach()).full_tensor().cpu()
