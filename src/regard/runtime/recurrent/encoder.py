"""A recurrent encoder that is ready to read many sentences."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.kernels import recurrent as kernels
from regard.kernels.products import packed as packing
from regard.kernels.threads import parallel_blocks
from regard.layers import RecurrentEncoder
from regard.runtime.recurrent.decoder import layers_of


class PreparedEncoder(nn.Module):
    """A recurrent encoder whose pass is one compiled loop for each block of sentences.

    Args:
        encoder: In evaluation mode.
    """

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        recurrence = encoder.recurrence
        self.hidden_dim = encoder.hidden_dim
        self._cell = kernels.CELLS.index(recurrence.mode)
        ways = zip(layers_of(recurrence), layers_of(recurrence, "_reverse"), strict=True)
        # Of each kind, that of each layer: of both directions one on the other.
        inputs, input_biases, hidden, hidden_biases = (
            [[each.detach().numpy() for each in pair] for pair in of]
            for of in zip(*(zip(*both, strict=True) for both in ways), strict=True)
        )
        first, *later = (packing.pack_each(pair) for pair in inputs)
        none = np.zeros((0, *first.shape[:2], 2 * encoder.hidden_dim, packing.OUTPUTS), np.float32)
        own = np.stack([packing.pack_each(pair) for pair in hidden])
        of_inputs, of_hidden = (
            np.stack([packing.pad_each(pair) for pair in of])
            for of in (input_biases, hidden_biases)
        )
        self._weights = kernels.EncoderWeights(
            first, np.stack(later) if later else none, of_inputs, own, of_hidden
        )

    @torch.no_grad()
    def forward(
        self, inputs: Float[Tensor, "B S X"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S Y"], Float[Tensor, "B Y"]]:
        """See ``layers.RecurrentEncoder``."""
        (B, S, _), width = inputs.shape, 2 * self.hidden_dim
        states, last = torch.zeros(B, S, width), torch.empty(B, width)
        read, real = inputs.contiguous().numpy(), lengths.to(torch.int64).numpy()
        order = np.argsort(-real, kind="stable")
        out, ends = states.numpy(), last.numpy()

        def go(first: int, stop: int) -> None:
            kernels.encode(first, stop, read, real, order, self._weights, self._cell, out, ends)

        parallel_blocks(B, go)
        return states, last
