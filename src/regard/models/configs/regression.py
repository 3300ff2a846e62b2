"""Settings of kernel regression."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.checks import check_positive
from regard.fields import check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelRegressionConfig:
    """Kernel and bandwidth of kernel regression.

    Raises:
        SettingError: The kernel is none of the choices, or the bandwidth is not above 0.

    Example:
        >>> import torch
        >>> from regard.models import KernelRegression
        >>> places, seen = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]])
        >>> configs = [KernelRegressionConfig(bandwidth=each) for each in (0.1, float("inf"))]
        >>> [KernelRegression(each)(places[:1], places, seen).item() for each in configs]
        [2.0, 3.0]

    Attributes:
        kernel: ``gaussian``, ``laplace``, ``epanechnikov`` or ``box``.
        bandwidth: How far "near" reaches, at first. Infinite: every key counts the same, whatever
            the query, which is average pooling.
        per_dimension: Whether each dimension has a bandwidth of its own.
        is_learned: Whether the bandwidth is trained. That of a box has no gradient.
    """

    kernel: Literal["gaussian", "laplace", "epanechnikov", "box"] = "gaussian"
    bandwidth: Annotated[float, check_positive] = 1.0
    per_dimension: bool = False
    is_learned: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
