"""Layers of an encoder one after the other, each product shared out among threads.

For weights that are too large for the cache of a core, or gated: where they are small, one loop
goes through all layers; see ``kernels.transformer.encoder``. Tokens of all sources stand row after
row here as well, without padding, and what a source gets does not depend on the others.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor, nn

from regard.kernels.threads import parallel_rows
from regard.kernels.transformer import decoder as kernels
from regard.kernels.transformer import encoder as loops
from regard.kernels.transformer.decoder import Options
from regard.kernels.transformer.encoder import Embeddings, EncoderPositions, Sources
from regard.layers.block import TransformerBlock
from regard.runtime.products.int8 import Int8Linear
from regard.runtime.products.linear import projection_of
from regard.runtime.transformer.layers import activation_of, norms_of


class LayerwiseEncoder:
    """The layers of an encoder.

    Args:
        blocks: The layers.
        last: The norm behind them where it is pre-norm.
        options: What they have in common.
        others: Maps that follow the layers.
    """

    def __init__(
        self,
        blocks: Sequence[TransformerBlock],
        last: nn.Module,
        options: Options,
        others: Sequence[nn.Linear | Int8Linear] = (),
    ) -> None:
        self._options = options
        self._maps = [
            list(map(projection_of, of)) for of in zip(*projections_of(blocks), strict=True)
        ]
        self._norms, self._activate = norms_of(blocks, last), activation_of(blocks[0], options)
        self.others = list(map(projection_of, others))

    def embed(
        self, sources: Sources, ends: Embeddings, width: int
    ) -> tuple[Float32[np.ndarray, "R C"], Float32[np.ndarray, "R C"]]:
        """The vectors of all sources' tokens, with their places, and without if that is wanted."""
        x = np.empty((len(sources.tokens), width), np.float32)
        embedded = np.zeros_like(x) if sources.mixes_embeddings else x
        rest, count = (sources, ends, self._options, x, embedded), len(sources.begins) - 1
        operations = 8 * x.size // max(1, count)
        parallel_rows(count, operations, lambda *part: loops.embed_sources(*part, *rest))
        return x, embedded

    @torch.no_grad()
    def __call__(
        self,
        states: Float32[np.ndarray, "R C"],
        begins: Int64[np.ndarray, " B+1"],
        seen: EncoderPositions,
    ) -> Float32[np.ndarray, "R C"]:
        """Apply the layers to the tokens' vectors, in place.

        Args:
            states: Of all sources, one after the other.
            begins: Where those of each source begin, and where the last end.
            seen: What a token sees of others.
        """
        options, norms, (rows, width) = self._options, iter(self._norms), states.shape
        normed = np.empty_like(states) if options.is_pre else states
        given = torch.from_numpy(normed)

        def add(change: Tensor) -> None:
            added, (weight, bias) = change.numpy(), next(norms)
            rest = (states, added, weight, bias, options, normed)
            parallel_rows(rows, 8 * width, lambda *part: kernels.add_norm(*part, *rest))

        if options.is_pre:
            first = (states, *next(norms), options, normed)
            parallel_rows(rows, 8 * width, lambda *part: kernels.norm(*part, *first))
        for own, own_out, inner, outer in self._maps:
            add(own_out(self._mixed(own(given), begins, seen)))
            add(outer(self._activate(inner(given))))
        return normed

    def _mixed(
        self, projected: Tensor, begins: Int64[np.ndarray, " B+1"], seen: EncoderPositions
    ) -> Tensor:
        """Attention of all heads of all sources, from queries, keys and values in one array."""
        options, numbers = self._options, projected.numpy()
        made = projected.new_empty(len(projected), options.heads * options.head_dim)
        sources, mixed = len(begins) - 1, made.numpy()
        if seen.rotary.size:
            turned = (begins, seen, options, numbers)
            parallel_rows(sources, 2**16, lambda *part: loops.rotate_sources(*part, *turned))
        rest = (begins, seen, options, numbers, mixed)
        longest = int(np.diff(begins).max(initial=0))
        operations = 4 * longest * longest * options.head_dim
        tasks = sources * options.heads
        parallel_rows(tasks, operations, lambda *part: loops.attend_by_heads(*part, *rest))
        return made


def projections_of(blocks: Sequence[TransformerBlock]) -> list[list[nn.Linear | Int8Linear]]:
    """The linear maps of each kind, in the order of ``kernels.transformer.encoder.Layers``."""
    attends = [block.attend for block in blocks]
    return [
        [each.query_key_value for each in attends if each.query_key_value is not None],
        [each.output for each in attends],
        [block.feed.inner for block in blocks],
        [block.feed.outer for block in blocks],
    ]
