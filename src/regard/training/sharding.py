"""A model whose weights, gradients and optimizer lie in parts with several processes: FSDP2.

Each layer's weights are put together when a batch gets to it, and its gradients taken apart when
they are known: Zhao et al. (2023), https://arxiv.org/abs/2304.11277, as torch's ``fully_shard`` has
it. Checkpoints are of the whole, the same files as without it.
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
from regard.training.optimizers import Optimizers
from regard.training.ranks import Ranks, lost_told


class ShardedModel:
    """A model of which each process has parts.

    Args:
        model: Whole, with the same weights in all processes. It is for validation: a copy learns.
        ranks: The processes.
        device: Where it is.
    """

    is_whole = False

    def __init__(self, model: nn.Module, ranks: Ranks, device: torch.device) -> None:
        self.model, self.learner = model, deepcopy(model)
        # It is about sums in place, of which the layers make none with what others give them.
        warnings.filterwarnings("ignore", r"FSDP2-wrapped module .* returned a view", UserWarning)
        group = ranks.group or dist.group.WORLD
        assert group is not None
        mesh = DeviceMesh.from_group(group, device.type)
        for part in list(self.learner.modules()):
            if isinstance(part, TransformerBlock):
                fully_shard(_together(part), mesh=mesh)
        # Of the model itself are the tables, which the logits take after its forward, too.
        fully_shard(self.learner, mesh=mesh, reshard_after_forward=False)
        for part in self.learner.modules():
            if isinstance(part, FSDPModule):
                part.set_gradient_divide_factor(1.0)  # sums, not means
                part.set_force_sum_reduction_for_comms(True)

    @torch.no_grad()
    def begin(self) -> None:
        """Learn from the model's weights on."""
        whole = self.model.state_dict()
        for name, parameter in self.learner.named_parameters():
            parameter.copy_(_split(whole[name], parameter))
        for name, buffer in self.learner.named_buffers():
            if name in whole:
                buffer.copy_(whole[name])

    def show(self) -> None:
        """Give the model what was learned so far."""
        self.model.load_state_dict(self._weights())

    def saved(self, optimizer: Optimizers) -> tuple[dict[str, Tensor], dict[str, object]]:
        """The weights and the optimizer's state, whole."""
        state = cast("dict[str, object]", _gathered(optimizer.state_dict()))
        return self._weights(), state

    def restore(self, optimizer: Optimizers, state: Mapping[str, object]) -> None:
        """Go on with an optimizer from the whole of its state."""
        parameters = [each for each in self.learner.parameters() if each.requires_grad]
        of_each = cast(Mapping[int, Mapping[str, object]], state["state"])
        split = {
            number: {
                name: _split(value, parameters[number])
                if isinstance(value, Tensor) and value.shape == parameters[number].shape
                else value
                for name, value in values.items()
            }
            for number, values in of_each.items()
        }
        optimizer.load_state_dict({**state, "state": split})

    def norm(self, gradients: Sequence[Tensor]) -> float:
        """The norm of all gradients as one vector."""
        return float(cast(Tensor, _gathered(get_total_norm(gradients))))

    def _weights(self) -> dict[str, Tensor]:
        """The weights, whole; tied ones share a tensor."""
        saved = self.learner.state_dict()
        named = self.learner.named_parameters(remove_duplicate=False)
        tied = {name: id(each) for name, each in named}
        wholes: dict[int, Tensor] = {}
        for name, tensor in saved.items():
            key = tied.get(name, id(tensor))
            if key not in wholes:
                wholes[key] = cast(Tensor, _gathered(tensor))
        return {name: wholes[tied.get(name, id(tensor))] for name, tensor in saved.items()}


def _together(layer: TransformerBlock) -> list[nn.Module]:
    """Units of a layer that FSDP gathers and frees together.

    The layer; but one that looks at a memory projects that before it is called, by weights which
    are left to the model itself.
    """
    if layer.look is None:
        return [layer]
    looking = [layer.look._modules.get(name) for name in ("query", "output")]
    parts = (layer.attend, *looking, layer.feed)
    return [part for part in parts if part is not None]


def _split(whole: Tensor, like: Tensor) -> Tensor:
    if not isinstance(like, DTensor):
        return whole
    with lost_told():
        return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements)


def _gathered(value: object) -> object:
    """The whole of a tensor in parts, and of all in a mapping; the same order in all processes."""
    if isinstance(value, Mapping):
        return {key: _gathered(each) for key, each in value.items()}
    if not isinstance(value, DTensor):
        return value
    with lost_told():
        return cast(DTensor, value.detach()).full_tensor().cpu()
