"""Logits from numbers that say how much two texts have in common."""

from jaxtyping import Float
from torch import Tensor, nn


class OverlapScore(nn.Module):
    """Logits from numbers that say how much two texts have in common."""

    def __init__(self, num_features: int, num_classes: int, *, hidden_dim: int = 32) -> None:
        super().__init__()
        self.hidden = nn.Linear(num_features, hidden_dim)
        self.output = nn.Linear(hidden_dim, num_classes)

    def forward(self, features: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch K"]:
        """The logits."""
        logits: Tensor = self.output(self.hidden(features).relu())
        return logits
