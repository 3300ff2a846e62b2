"""Which optimizer takes the steps."""

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from regard.training.muon import Muon
from regard.training.settings import TrainingConfig


class Optimizers:
    """One optimizer or several, each with its own parameters, stepped and saved as one.

    Args:
        parts: Who takes the steps.
    """

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = list(parts)

    @property
    def param_groups(self) -> list[dict[str, object]]:
        """The groups of all."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """One step of each."""
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for part in self.parts:
            part.zero_grad()

    def state_dict(self) -> dict[str, object]:
        """What a later run needs to go on; of a single one, its own."""
        if len(self.parts) == 1:
            return self.parts[0].state_dict()
        return {str(number): part.state_dict() for number, part in enumerate(self.parts)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what ``state_dict`` gave."""
        if len(self.parts) == 1:
            self.parts[0].load_state_dict(dict(state))
            return
        for number, part in enumerate(self.parts):
            part.load_state_dict(cast(dict[str, object], state[str(number)]))


def make_optimizer(
    model: nn.Module, config: TrainingConfig, rate: float, *, dtype: torch.dtype
) -> Optimizers:
    """The optimizer of the settings, over every parameter that learns.

    ``muon`` (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/) makes the steps of
    weight matrices orthogonal, at a size that matches Adam's, so that one learning rate fits both
    (Liu et al., 2025, https://arxiv.org/abs/2502.16982); embeddings, biases and gains are left to
    AdamW. ``dtype`` is what Muon's own products run in.
    """
    learning = [p for p in model.parameters() if p.requires_grad]
    if config.optimizer == "sgd":
        sgd = SGD(learning, lr=rate, momentum=config.momentum, weight_decay=config.weight_decay)
        return Optimizers([sgd])
    if config.optimizer == "adamw":
        return Optimizers([_adamw(learning, config, rate)])
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    matrices = [p for p in learning if p.dim() == 2 and id(p) not in tables]
    chosen = {id(p) for p in matrices}
    muon = Muon(
        matrices,
        lr=rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        dtype=dtype,
    )
    return Optimizers([muon, _adamw([p for p in learning if id(p) not in chosen], config, rate)])


def _adamw(parameters: list[nn.Parameter], config: TrainingConfig, rate: float) -> AdamW:
    return AdamW(
        parameters,
        lr=rate,
        betas=(config.betas[0], config.betas[1]),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
