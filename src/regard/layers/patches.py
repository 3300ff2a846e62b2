"""Pictures as sequences: a vector for each square of pixels."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_at_least
from regard.errors import SettingError


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
