"""The Transformer's encoder on pictures.

Dosovitskiy et al. (2021), "An image is worth 16×16 words", https://arxiv.org/abs/2010.11929.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import check_count
from regard.layers import Dropout, LearnedPositions
from regard.layers.block import BlockStack, TransformerBlock
from regard.layers.embedding import PatchEmbedding
from regard.models.configs.readers import VisionTransformerConfig
from regard.models.readers import block_options


class VisionTransformer(nn.Module):
    """Logits of the classes of a picture.

    ``z = [x_class; x_1 E; …; x_N E] + E_pos``, layers of self-attention and feed-forward with the
    norm first, and a linear layer on the normed state of the class token: equations 1 to 4.

    Args:
        config: Sizes and options.
        size: Height and width of the pictures, in pixels.
        channels: Numbers of a pixel, P: 1 of grey, 3 of colour.
        num_classes: How many labels there are, K.

    Example:
        >>> model = VisionTransformer(VisionTransformerConfig(), size=(8, 8), num_classes=10)
        >>> model(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        config: VisionTransformerConfig,
        *,
        size: tuple[int, int],
        channels: int = 1,
        num_classes: int,
    ) -> None:
        super().__init__()
        check_count("num_classes", num_classes)
        width = config.model_dim
        self.config = config
        self.patches = PatchEmbedding(width, size=size, patch=config.patch, channels=channels)
        num_patches = self.patches.grid[0] * self.patches.grid[1]
        self.first: nn.Parameter | None = None
        if config.pooling == "first":
            self.first = nn.Parameter(torch.zeros(width))
        self.positions = LearnedPositions(width, max_length=num_patches + (self.first is not None))
        self.dropout = Dropout(config.dropout)
        self.layers = BlockStack(
            config.num_layers,
            partial(TransformerBlock, "encoder", norm="pre", **block_options(config)),
        )
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, num_classes)

    def forward(self, pictures: Float[Tensor, "B P Y X"]) -> Float[Tensor, "B K"]:
        """The logits.

        Args:
            pictures: Channels, rows, columns; of the height and width that the model was made for.
        """
        states = self.patches(pictures)
        if self.first is not None:
            first = self.first.expand(states.shape[0], 1, -1)
            states = torch.cat([first, states], dim=1)  # (B, 1 + N, C)
        states = self.dropout(self.positions(states))
        states = self.norm(self.layers(states)[0])
        pooled = states.mean(dim=1) if self.first is None else states[:, 0]
        logits: Tensor = self.output(pooled)
        return logits

    @torch.no_grad()
    def divide_logits(self, temperature: float) -> None:
        """Divide the logits by a temperature, in the weights."""
        self.output.weight.div_(temperature)
        self.output.bias.div_(temperature)
