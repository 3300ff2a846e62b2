"""An exponential moving average of a model's weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """Exponential moving average of weights; its decay is at most ``(1 + n) / (10 + n)`` at n."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, updates: int) -> None:
        """Move towards the model's weights."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        current = [p.detach() for _, p in model.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from saved averages."""
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])

    @contextmanager
    def installed(self, model: nn.Module) -> Iterator[None]:
        """The model with the averages as its weights, inside the block."""
        parameters = dict(model.named_parameters())
        before = {name: p.detach().clone() for name, p in parameters.items()}
        _fill(parameters, self.weights)
        try:
            yield
        finally:
            _fill(parameters, before)


@torch.no_grad()
def _fill(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
