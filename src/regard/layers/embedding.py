"""Embeddings: of tokens, a table of vectors, one per id; of pictures, a vector for each patch."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_at_least
from regard.errors import SettingError


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


class PatchEmbedding(nn.Module):
    """A state for each square patch of a picture, row by row from the top left.

    ``x E + b`` on the pixels of a patch: Dosovitskiy et al. (2021), https://arxiv.org/abs/2010.11929,
    equation 1, where E is the kernel of a convolution that steps over whole patches.

    Args:
        model_dim: Width of the states, C.
        size: Height and width of the pictures, in pixels; the patch divides both.
        patch: Height and width of a patch, in pixels.
        channels: Numbers of a pixel, P: 1 of grey, 3 of colour.

    Raises:
        SettingError: A patch does not divide the pictures.

    Example:
        >>> PatchEmbedding(5, size=(4, 6), patch=2, channels=3)(torch.zeros(7, 3, 4, 6)).shape
        torch.Size([7, 6, 5])
    """

    def __init__(
        self, model_dim: int, *, size: tuple[int, int], patch: int, channels: int = 1
    ) -> None:
        super().__init__()
        check_at_least("model_dim", model_dim, 1)
        check_at_least("patch", patch, 1)
        check_at_least("channels", channels, 1)
        if any(side < 1 or side % patch for side in size):
            raise SettingError(
                f"patch must divide the pictures' height and width, {size[0]} × {size[1]}; got "
                f"{patch}."
            )
        self.patch = patch
        self.grid = (size[0] // patch, size[1] // patch)
        self.weight = nn.Parameter(torch.empty(model_dim, channels, patch, patch))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        nn.init.xavier_uniform_(self.weight.view(model_dim, -1))

    def forward(self, pictures: Float[Tensor, "B P Y X"]) -> Float[Tensor, "B N C"]:
        """The states of the patches.

        Args:
            pictures: Channels, rows, columns.
        """
        states = F.conv2d(pictures, self.weight, self.bias, stride=self.patch)
        return states.flatten(2).mT
