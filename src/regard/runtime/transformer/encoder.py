"""An encoder and what a decoder looks at of it."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor, nn

from regard.kernels.threads import parallel_blocks
from regard.kernels.transformer import encoder as kernels
from regard.kernels.transformer.encoder import EncoderPositions, Layers, Sources
from regard.layers import MultiHeadAttention, TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.models.transformer import Transformer
from regard.runtime.products import projections
from regard.runtime.products.int8 import Int8Embedding, Int8Linear
from regard.runtime.transformer.layers import (
    MOST_BYTES,
    PositionTable,
    RotaryTable,
    bytes_of,
    norms_of,
    numbers_of,
    options_of,
)
from regard.runtime.transformer.layerwise import LayerwiseEncoder, projections_of


class PreparedEncoder:
    """The encoder of a Transformer, and keys and values of its sources for every decoder layer.

    Args:
        model: One that can be prepared.
    """

    def __init__(self, model: Transformer) -> None:
        blocks, config = list(model.encoder), model.config
        embedding_norm, embedding_norm_bias = numbers_of(model.source_norm)
        embedding = model.source_embedding
        assert isinstance(embedding, TokenEmbedding | Int8Embedding)
        looks = [block.look for block in model.decoder if block.look is not None]
        width = looks[0].num_key_heads * looks[0].head_dim
        alibi_heads = config.num_heads if config.positions == "alibi" else None
        self._options = options_of(blocks, alibi_heads)
        projects = [_of_memory(look) for look in looks]
        self._layers: Layers | LayerwiseEncoder
        key = value = projections.NO_PROJECTIONS
        if fit_one_loop(blocks, projects):
            self._layers = layers_of(blocks, model.encoder_norm)
            key, value = (
                projections.pack_projections(
                    [projections.part_of(each, outputs) for each in projects]
                )
                for outputs in (slice(width), slice(width, None))
            )
        else:
            self._layers = LayerwiseEncoder(blocks, model.encoder_norm, self._options, projects)
        self._ends = kernels.Embeddings(
            key=key,
            value=value,
            embedding=projections.embedding_table(embedding),
            embedding_norm=embedding_norm,
            embedding_norm_bias=embedding_norm_bias,
        )
        attend = blocks[0].attend
        assert attend is not None
        self._places = PositionTable(model.positions, config.model_dim)
        self._rotary = RotaryTable(attend.rotary)
        self._reach, self._mixes_embeddings = config.window, config.values == "embeddings"
        self._begin_id = model.begin_id if config.source_begin else None
        self._shape, self._width = (len(looks), 2 * width), config.model_dim

    def __call__(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources, side by side, for every decoder layer."""
        begin = [] if self._begin_id is None else [self._begin_id]
        rows = [
            [*begin, *ids[:length]]
            for ids, length in zip(source.tolist(), lengths.tolist(), strict=True)
        ]
        begins = np.array([0, *accumulate(map(len, rows))])
        longest = source.shape[1] + len(begin)
        sources = kernels.Sources(
            tokens=np.array([token for row in rows for token in row], np.int64),
            begins=begins,
            unseen=len(begin),
            places=self._places.until(longest),
            mixes_embeddings=self._mixes_embeddings,
        )
        reach = longest if self._reach is None else self._reach
        seen = kernels.EncoderPositions(self._rotary.until(longest), reach)
        layers, width = self._shape
        memory = np.zeros((layers, *source.shape, width), np.float32)
        if isinstance(self._layers, LayerwiseEncoder):
            self._read_by_layers(self._layers, sources, seen, memory)
            return memory
        given = (sources, seen, self._ends, self._layers, self._options, memory)
        parallel_blocks(len(rows), lambda *part: kernels.encode_sources(*part, *given))
        return memory

    def _read_by_layers(
        self,
        layers: LayerwiseEncoder,
        sources: Sources,
        seen: EncoderPositions,
        memory: Float32[np.ndarray, "L B M W"],
    ) -> None:
        """Run ``encode_sources`` layer by layer."""
        begins, half = sources.begins, self._shape[1] // 2
        x, embedded = layers.embed(sources, self._ends, self._width)
        states = torch.from_numpy(layers(x, begins, seen))
        for kept, project in zip(memory, layers.others, strict=True):
            found = project(states).numpy()
            if self._mixes_embeddings:
                found[:, half:] = project(torch.from_numpy(embedded)).numpy()[:, half:]
            for b, (begin, stop) in enumerate(pairwise(begins)):
                if (real := found[begin + sources.unseen : stop]).size:
                    kept[b, : len(real)] = real


def layers_of(blocks: Sequence[TransformerBlock], last: nn.Module) -> Layers:
    """The weights of an encoder's layers, and of the norm behind them where it is pre-norm."""
    own, own_out, inner, outer = (
        projections.pack_projections([projections.part_of(each) for each in several])
        for several in projections_of(blocks)
    )
    norms = norms_of(blocks, last)
    return kernels.Layers(
        own=own,
        own_out=own_out,
        inner=inner,
        outer=outer,
        norms=np.stack([weight for weight, _ in norms]),
        norm_biases=np.stack([bias for _, bias in norms]),
    )


def fit_one_loop(blocks: Sequence[TransformerBlock], others: Sequence[nn.Module] = ()) -> bool:
    """Whether one loop can take layers that can be prepared, with weights that are small enough.

    Args:
        blocks: The layers.
        others: Maps besides theirs.
    """
    parts: list[nn.Module | None] = [each for several in projections_of(blocks) for each in several]
    return options_of(blocks, None).activation >= 0 and bytes_of([*parts, *others]) <= MOST_BYTES


def _of_memory(look: MultiHeadAttention) -> nn.Linear | Int8Linear:
    """Product for the keys and values of a memory."""
    assert look.key_value is not None
    return look.key_value
