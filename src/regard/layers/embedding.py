"""Token embeddings: a table of vectors, one per id."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class TokenEmbedding(nn.Module):
    """A vector for every token id, optionally scaled by the square root of its width.

    The Transformer multiplies by sqrt(C) (Vaswani et al., 2017, section 3.4), and draws the table
    with deviation 1/sqrt(C), so that embeddings have unit size next to the positions while the
    same table, used as the last layer, gives logits of unit size.

    Args:
        vocab_size: Number of ids, V.
        model_dim: Width, C.
        pad_id: The id that begins as zeros and gets no gradient from where it is read; None if
            every id is a token.
        scaled: Whether embeddings are multiplied by sqrt(C).

    Example:
        >>> embedding = TokenEmbedding(vocab_size=11, model_dim=4)
        >>> states = embedding(torch.tensor([[7, 3, 0]]))
        >>> states.shape, states[0, 2].tolist()
        (torch.Size([1, 3, 4]), [0.0, 0.0, 0.0, 0.0])
        >>> embedding.logits(states).shape
        torch.Size([1, 3, 11])
    """

    def __init__(
        self, vocab_size: int, model_dim: int, *, pad_id: int | None = 0, scaled: bool = True
    ) -> None:
        super().__init__()
        self.scale = model_dim**0.5 if scaled else 1.0
        self.pad_id = pad_id
        self.weight = nn.Parameter(torch.randn(vocab_size, model_dim) * model_dim**-0.5)
        if pad_id is not None:
            self.weight.data[pad_id] = 0

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        """The vectors of ``ids``."""
        return F.embedding(ids, self.weight, padding_idx=self.pad_id) * self.scale

    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """How well each state matches each token: the table used as the last layer.

        Args:
            states: What predicts.
            bias: What a token has before anything is matched.
        """
        logits = F.linear(states, self.weight)
        return logits if bias is None else logits + bias

    def extra_repr(self) -> str:
        """Sizes, for ``print(model)``."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, scale={self.scale:.4g}"
