"""Muon, its products in the dtype that the processor is fast in."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

# Keller Jordan's quintic: steepest at zero, https://kellerjordan.github.io/posts/muon/
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5
_EPS = 1e-7


class Muon(Optimizer):
    """Momentum whose steps are orthogonal matrices (Jordan et al., 2024).

    The rule of ``torch.optim.Muon`` with Nesterov's momentum and steps as large as Adam's (Liu et
    al., 2025, https://arxiv.org/abs/2502.16982), state and settings by the same names. Torch's
    multiplies in bfloat16 always, in which processors without AVX-512 BF16 or AMX are many times
    slower than in float32.

    Args:
        parameters: Weight matrices.
        lr: Learning rate, as for AdamW.
        momentum: Share of the average that a step keeps.
        weight_decay: Decoupled from the gradient.
        dtype: What products run in; the parameters' own where it is more exact.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        dtype: torch.dtype,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step down the gradient of every matrix that has one."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(weight.grad)
                mean = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
                direction = orthogonalized(weight.grad.lerp(mean, momentum), self.dtype)
                weight.mul_(1 - rate * group["weight_decay"])
                weight.add_(direction, alpha=-rate * 0.2 * max(weight.shape) ** 0.5)


def orthogonalized(matrix: Float[Tensor, "N M"], dtype: torch.dtype) -> Float[Tensor, "N M"]:
    """The matrix with its singular values brought near one: five steps of Newton and Schulz.

    They end between about 0.7 and 1.2, which serves as well as one.
    """
    a, b, c = _COEFFICIENTS
    is_tall = matrix.size(0) > matrix.size(1)
    found = (matrix.mT if is_tall else matrix).to(dtype)
    found = found / found.norm().clamp(min=_EPS)
    for _ in range(_STEPS):
        gram = found @ found.mT
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if is_tall else found
