"""Kernel regression of Nadaraya (1964) and Watson (1964): attention before it had the name.

https://doi.org/10.1137/1109020 and https://www.jstor.org/stable/25049340. The queries are
places to predict, the keys places of observations, the values the observed targets.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import (
    Box,
    Epanechnikov,
    Gaussian,
    Laplace,
    Mask,
    Score,
    attend,
    weights,
    window,
)
from regard.checks import check_count
from regard.errors import ShapeError
from regard.models.configs.readers import KernelRegressionConfig

KERNELS: dict[str, Callable[[Tensor], Score]] = {
    "box": Box,
    "epanechnikov": Epanechnikov,
    "gaussian": Gaussian,
    "laplace": Laplace,
}


class KernelRegression(nn.Module):
    """Nadaraya-Watson regression: the mean of observations, weighted by a kernel.

    ``f(x) = Σ K(w (x − xᵢ)) yᵢ / Σ K(w (x − xⱼ))``, with w one over the bandwidth: as attention,
    ``softmax(log K) · y``. The parameter is w, and may pass through zero in training: kernels are
    even. Memory grows with the number of points and not with its square.

    Args:
        config: Kernel and bandwidth.
        dim: Dimensions of a place, D.

    Example:
        >>> places, targets = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]])
        >>> KernelRegression(KernelRegressionConfig())(torch.tensor([[0.5]]), places, targets)
        tensor([[3.]])
    """

    def __init__(self, config: KernelRegressionConfig, *, dim: int = 1) -> None:
        super().__init__()
        check_count("dim", dim)
        self.config = config
        self.dim = dim
        w = torch.full((dim if config.per_dimension else 1,), 1 / config.bandwidth)
        self.w = nn.Parameter(w, requires_grad=config.is_learned)

    @property
    def bandwidth(self) -> Float[Tensor, " D"] | Float[Tensor, " 1"]:
        """The reach of "near": one over w."""
        return 1 / self.w.abs()

    def forward(
        self,
        queries: Float[Tensor, "N D"],
        places: Float[Tensor, "M D"],
        targets: Float[Tensor, "M E"],
        *,
        mask: Mask | None = None,
    ) -> Float[Tensor, "N E"]:
        """The guess at each place asked for; zero where no kernel reaches.

        Args:
            queries: Where to guess.
            places: Where targets were observed.
            targets: The observations there.
            mask: Which of the places may be used for which guess.

        Raises:
            ShapeError: Places have not ``dim`` dimensions.
        """
        query, key = self._scaled(queries), self._scaled(places)
        score = self._score(query)
        return attend(query, key, targets, score=score, mask=mask)

    def weights(
        self, queries: Float[Tensor, "N D"], places: Float[Tensor, "M D"]
    ) -> Float[Tensor, "N M"]:
        """Weights of each place for each guess: the matrix that heat maps show."""
        query, key = self._scaled(queries), self._scaled(places)
        return weights(query, key, score=self._score(query))

    def leave_one_out(
        self, places: Float[Tensor, "M D"], targets: Float[Tensor, "M E"]
    ) -> Float[Tensor, "M E"]:
        """The guess at each place from all the others, on which a bandwidth can be trained.

        With its own place among the keys, the best bandwidth of every training set is zero.
        """
        mask = ~window(before=0, after=0, first=0)
        guesses: Tensor = self(places, places, targets, mask=mask)
        return guesses

    def _scaled(self, inputs: Tensor) -> Tensor:
        if not isinstance(inputs, Tensor):
            raise ShapeError(
                f"places must be tensors; got {type(inputs).__name__}. Use torch.as_tensor."
            )
        if inputs.shape[-1] != self.dim:
            raise ShapeError(
                f"places must have dim={self.dim} dimensions; got {tuple(inputs.shape)}."
            )
        return inputs * self.w.to(inputs.dtype)

    def _score(self, query: Tensor) -> Score:
        """The kernel of width one, whose parameter is of the query's dtype."""
        return KERNELS[self.config.kernel](query.new_ones(()))


@dataclass(frozen=True)
class SineExample:
    """The classic example: ``y = 2 sin x + x^0.8`` on (0, 5), seen with Gaussian noise."""

    places: Float[Tensor, "M 1"]
    targets: Float[Tensor, "M 1"]
    queries: Float[Tensor, "N 1"]
    truth: Float[Tensor, "N 1"]

    @classmethod
    def draw(cls, seed: int = 0, *, count: int = 50, noise: float = 0.5) -> "SineExample":
        """The example with the noise of this seed."""
        generator = torch.Generator().manual_seed(seed)
        places = 5 * torch.rand(count, 1, generator=generator).sort(dim=0).values
        queries = torch.arange(50)[:, None] / 10
        targets = _curve(places) + noise * torch.randn(count, 1, generator=generator)
        return cls(places, targets, queries, _curve(queries))


def _curve(x: Tensor) -> Tensor:
    return 2 * x.sin() + x**0.8
