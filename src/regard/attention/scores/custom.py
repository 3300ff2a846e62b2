"""A score that a user writes as a function."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.attention.scores.base import Score
from regard.errors import SettingError, ShapeError


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Custom(Score):
    """A score by any formula, in memory that grows with N all the same.

    Attributes:
        function: Called as ``function(query, key, *tensors)`` with (B, H, n, D) queries and
            (B, H, m, K) keys of a tile; gives their (B, H, n, m) scores. Its answer for a pair
            must depend on that pair alone.
        parameters: Tensors that gradients flow to. One that the function merely captures would be
            passed over, and is refused.

    Example:
        >>> import torch
        >>> from regard.attention import attend
        >>> sharpness = torch.tensor(3.0, requires_grad=True)
        >>> score = Custom(lambda q, k, sharpness: sharpness * (q @ k.mT), sharpness)
        >>> attend(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 3, 2), score=score).shape
        torch.Size([1, 1, 1, 2])
    """

    gives_new_tiles = False

    function: Callable[..., Tensor]
    parameters: tuple[Tensor, ...]

    def __init__(self, function: Callable[..., Tensor], *tensors: Tensor) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "parameters", tensors)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors it was made with."""
        return self.parameters

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise unless the function scores one query and one key, and captures no parameter."""
        one, other = query.detach()[..., :1, :], key.detach()[..., :1, :]
        if not one.numel() or not other.numel():
            return
        if one.dim() == 4 and one.shape[1] != other.shape[1]:
            other = other.repeat_interleave(one.shape[1] // other.shape[1], dim=1)
        scores = self.function(one, other, *(t.detach() for t in self.parameters))
        want = (*one.shape[:-1], 1)
        if not isinstance(scores, Tensor) or scores.shape != want:
            came = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ShapeError(
                f"function must give scores of shape (B, H, n, m) = {want}; got {came}."
            )
        if scores.requires_grad:
            raise SettingError(
                "function must take every tensor that needs a gradient as an argument; got one it "
                "captures. Pass it: Custom(function, tensor)."
            )

    def tile(
        self, query: Float[Tensor, "*b n D"], key: Float[Tensor, "*b m K"], *tensors: Tensor
    ) -> Float[Tensor, "*b n m"]:
        """The scores of every query with every key."""
        return self.function(query, key, *tensors)
