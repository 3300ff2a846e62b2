"""Norms: what keeps states of one size. One position at a time, or one number of all positions."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.checks import check_fraction, check_positive
from regard.choices import choose


class BatchNorm(nn.Module):
    """Each number of a state, over all real positions of a batch, with mean 0 and variance 1.

    ``w (x − E[x]) / √(Var[x] + ε) + b``: Ioffe & Szegedy (2015), https://arxiv.org/abs/1502.03167.
    The mean and variance of a batch while training, their running averages in use. A layer norm
    takes the same formula over the numbers of one state, and needs no batch.

    Args:
        model_dim: Width of the states, C.
        momentum: How much a batch moves the running averages.
        eps: What is added to a variance.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> states = torch.tensor([[[1.0], [3.0], [99.0]]])
        >>> counts = torch.tensor([[True, True, False]])
        >>> BatchNorm(1, eps=1e-9)(states, counts)[0, :2].flatten().tolist()
        [-1.0, 1.0]
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, model_dim: int, *, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        check_positive("model_dim", model_dim)
        check_fraction("momentum", momentum)
        self.momentum = momentum
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(model_dim))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        self.register_buffer("mean", torch.zeros(model_dim))
        self.register_buffer("variance", torch.ones(model_dim))

    def forward(
        self, states: Float[Tensor, "*batch C"], counts: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch C"]:
        """The states normed.

        Args:
            states: One vector per position.
            counts: Which positions are real; padding is normed like the others, but has no part in
                the mean and the variance. None: all are real.
        """
        mean, variance = self.mean, self.variance
        if self.training:
            rows = states.flatten(0, -2) if counts is None else states[counts]
            variance, mean = torch.var_mean(rows, dim=0, correction=0)
            self._remember(mean.detach(), variance.detach(), len(rows))
        scale = self.weight * (variance + self.eps).rsqrt()
        return (states - mean) * scale + self.bias

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running averages; that of the variance by the estimate without bias."""
        self.mean.lerp_(mean.to(self.mean.dtype), self.momentum)
        unbiased = variance * (count / max(1, count - 1))
        self.variance.lerp_(unbiased.to(self.variance.dtype), self.momentum)


# Zhang & Sennrich (2019), https://arxiv.org/abs/1910.07467, leave out the mean and the bias.
NORMS: dict[str, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": partial(nn.RMSNorm, eps=1e-6),
    "batch": BatchNorm,
}


def make_norm(kind: str, model_dim: int, *, eps: float | None = None) -> nn.Module:
    """A norm of states of this width.

    Args:
        kind: ``layer``, ``rms`` or ``batch``.
        model_dim: Width of the states, C.
        eps: What is added to a variance; None is the kind's own.

    Raises:
        SettingError: The kind is unknown.
    """
    norm = choose("kind", kind, NORMS)
    return norm(model_dim) if eps is None else norm(model_dim, eps=eps)


def final_norm(order: str, kind: str, model_dim: int, *, eps: float | None = None) -> nn.Module:
    """Final norm of a stack: pre-norm leaves the sum of all sublayers unnormalised."""
    return make_norm(kind, model_dim, eps=eps) if order == "pre" else nn.Identity()
