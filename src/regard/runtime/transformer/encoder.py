"""Encoders: of a Transformer, with what its decoder attends to, and of models with a head.

Small layers run in one compiled loop, for each block of texts. Where weights are too large for the
cache of a core, layers run one after the other, each product split among threads. Tokens of all
texts stand row after row, without padding, and what a text gets does not depend on the others.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.attention.observing import current_editor, current_observer
from regard.kernels.products.int8 import NO_PROJECTIONS
from regard.kernels.threads import parallel_blocks, parallel_rows
from regard.kernels.transformer import decoder as decoder_kernels
from regard.kernels.transformer import encoder as kernels
from regard.kernels.transformer.decoder import DecoderOptions
from regard.kernels.transformer.encoder import Embeddings, EncoderPositions, Layers, Sources
from regard.layers import TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.heads import Packing
from regard.models.interfaces import TextReader
from regard.models.readers import Encoder
from regard.models.transformer import Transformer
from regard.runtime.products import (
    MOST_BYTES,
    Int8Embedding,
    Int8Linear,
    bytes_of,
    embedding_table,
    pack_projections,
    part_of,
    projection_of,
)
from regard.runtime.transformer.layers import (
    PositionTable,
    RotaryTable,
    activation_of,
    norms_of,
    options_of,
    weights_of,
    why_not_prepared,
)

# The longest texts that one loop reads: it has all scores of a text and a head at once.
_LONGEST = 1024


class LayerwiseEncoder:
    """The layers of an encoder one by one, the last norm of pre-norm, and maps that follow."""

    def __init__(
        self,
        blocks: Sequence[TransformerBlock],
        last: nn.Module,
        options: DecoderOptions,
        others: Sequence[nn.Linear | Int8Linear] = (),
    ) -> None:
        self._options = options
        self._maps = [
            list(map(projection_of, of)) for of in zip(*projections_of(blocks), strict=True)
        ]
        self._norms, self._activate = norms_of(blocks, last), activation_of(options)
        self.others = list(map(projection_of, others))

    def embed(
        self, sources: Sources, embeddings: Embeddings, width: int
    ) -> tuple[Float32[np.ndarray, "R C"], Float32[np.ndarray, "R C"]]:
        """Vectors of all sources' tokens with positions, and without if values are those."""
        x = np.empty((len(sources.tokens), width), np.float32)
        embedded = np.zeros_like(x) if sources.mixes_embeddings else x
        rest, count = (sources, embeddings, self._options, x, embedded), len(sources.begins) - 1
        operations = 8 * x.size // max(1, count)
        parallel_rows(count, operations, lambda *part: kernels.embed_sources(*part, *rest))
        return x, embedded

    @torch.no_grad()
    def __call__(
        self,
        states: Float32[np.ndarray, "R C"],
        begins: Int64[np.ndarray, " B+1"],
        positions: EncoderPositions,
    ) -> Float32[np.ndarray, "R C"]:
        """Apply the layers to the tokens' vectors, in place; ``begins`` has each source's first."""
        options, norms, (rows, width) = self._options, iter(self._norms), states.shape
        normed = np.empty_like(states) if options.is_pre else states
        inputs = torch.from_numpy(normed)

        def add(change: Tensor) -> None:
            added, (weight, bias) = change.numpy(), next(norms)
            rest = (states, added, weight, bias, options, normed)
            parallel_rows(rows, 8 * width, lambda *part: decoder_kernels.add_norm(*part, *rest))

        if options.is_pre:
            add(torch.zeros_like(inputs))
        for self_in, self_out, inner, outer in self._maps:
            add(self_out(self._mixed(self_in(inputs), begins, positions)))
            add(outer(self._activate(inner(inputs))))
        return normed

    def _mixed(
        self, projected: Tensor, begins: Int64[np.ndarray, " B+1"], angles: EncoderPositions
    ) -> Tensor:
        """Attention of all heads of all sources, from queries, keys and values in one array."""
        options, numbers = self._options, projected.numpy()
        context = projected.new_empty(len(projected), options.heads * options.head_dim)
        sources, mixed = len(begins) - 1, context.numpy()
        if angles.rotary.size:
            turned = (begins, angles, options, numbers)
            parallel_rows(sources, 2**16, lambda *part: kernels.rotate_sources(*part, *turned))
        rest = (begins, angles, options, numbers, mixed)
        longest = int(np.diff(begins).max(initial=0))
        operations = 4 * longest * longest * options.head_dim
        tasks = sources * options.heads
        parallel_rows(tasks, operations, lambda *part: kernels.attend_by_heads(*part, *rest))
        return context


def projections_of(blocks: Sequence[TransformerBlock]) -> list[list[nn.Linear | Int8Linear]]:
    """The linear maps of each kind, in the order of ``kernels.transformer.encoder.Layers``."""
    attends = [block.attend for block in blocks]
    return [
        [each.query_key_value for each in attends if each.query_key_value is not None],
        [each.output for each in attends],
        [block.feed.inner for block in blocks],
        [block.feed.outer for block in blocks],
    ]


class TransformerEncoder:
    """The encoder of a Transformer, and keys and values of its sources for every decoder layer."""

    def __init__(self, model: Transformer) -> None:
        blocks, config = list(model.encoder), model.config
        embedding_norm, embedding_norm_bias = weights_of(model.source_norm)
        embedding = model.source_embedding
        assert isinstance(embedding, TokenEmbedding | Int8Embedding)
        looks = [block.look for block in model.decoder if block.look is not None]
        width = looks[0].num_key_heads * looks[0].head_dim
        alibi_heads = config.num_heads if config.positions == "alibi" else None
        self._options = options_of(blocks, alibi_heads)
        projects = [look.key_value for look in looks if look.key_value is not None]
        self._layers: Layers | LayerwiseEncoder
        key = value = NO_PROJECTIONS
        if fit_one_loop(blocks, projects):
            self._layers = layers_of(blocks, model.encoder_norm)
            key, value = (
                pack_projections([part_of(each, outputs) for each in projects])
                for outputs in (slice(width), slice(width, None))
            )
        else:
            self._layers = LayerwiseEncoder(blocks, model.encoder_norm, self._options, projects)
        self._embeddings = kernels.Embeddings(
            key=key,
            value=value,
            embedding=embedding_table(embedding),
            embedding_norm=embedding_norm,
            embedding_norm_bias=embedding_norm_bias,
        )
        attend = blocks[0].attend
        assert attend is not None
        self._positions = PositionTable(model.positions, config.model_dim)
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
            skipped=len(begin),
            places=self._positions.until(longest),
            mixes_embeddings=self._mixes_embeddings,
        )
        reach = longest if self._reach is None else self._reach
        positions = kernels.EncoderPositions(self._rotary.until(longest), reach)
        layers, width = self._shape
        memory = np.zeros((layers, *source.shape, width), np.float32)
        if isinstance(self._layers, LayerwiseEncoder):
            self._read_by_layers(self._layers, sources, positions, memory)
            return memory
        inputs = (sources, positions, self._embeddings, self._layers, self._options, memory)
        parallel_blocks(len(rows), lambda *part: kernels.encode_sources(*part, *inputs))
        return memory

    def _read_by_layers(
        self,
        layers: LayerwiseEncoder,
        sources: Sources,
        positions: EncoderPositions,
        memory: Float32[np.ndarray, "L B M W"],
    ) -> None:
        """Run ``encode_sources`` layer by layer."""
        begins, half = sources.begins, self._shape[1] // 2
        x, embedded = layers.embed(sources, self._embeddings, self._width)
        states = torch.from_numpy(layers(x, begins, positions))
        for cache, project in zip(memory, layers.others, strict=True):
            projected_rows = project(states).numpy()
            if self._mixes_embeddings:
                projected_rows[:, half:] = project(torch.from_numpy(embedded)).numpy()[:, half:]
            for b, (begin, stop) in enumerate(pairwise(begins)):
                if (real := projected_rows[begin + sources.skipped : stop]).size:
                    cache[b, : len(real)] = real


def layers_of(blocks: Sequence[TransformerBlock], last: nn.Module) -> Layers:
    """The weights of an encoder's layers, and of the norm behind them where it is pre-norm."""
    self_in, self_out, inner, outer = (
        pack_projections([part_of(each) for each in several]) for several in projections_of(blocks)
    )
    norms = norms_of(blocks, last)
    return kernels.Layers(
        self_in=self_in,
        self_out=self_out,
        inner=inner,
        outer=outer,
        norms=np.stack([weight for weight, _ in norms]),
        norm_biases=np.stack([bias for _, bias in norms]),
    )


def fit_one_loop(blocks: Sequence[TransformerBlock], others: Sequence[nn.Module] = ()) -> bool:
    """Whether one loop can take layers, and the maps behind them: all are small enough."""
    maps = [each for several in projections_of(blocks) for each in several]
    return bytes_of([*maps, *others]) <= MOST_BYTES


class PreparedReader(TextReader):
    """An encoder without padding, in one compiled loop if small; see ``PreparedSeq2Seq``."""

    reads_features = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        blocks = list(encoder.layers)
        attend = blocks[0].attend
        assert attend is not None
        norm, norm_bias = weights_of(encoder.embedding_norm)
        self.encoder = encoder
        self.embedding = encoder.embedding  # a head may predict words by it
        self.max_length, self.output_dim = encoder.max_length, encoder.output_dim
        self._embeddings = kernels.Embeddings(
            key=NO_PROJECTIONS,
            value=NO_PROJECTIONS,
            embedding=embedding_table(encoder.embedding),
            embedding_norm=norm,
            embedding_norm_bias=norm_bias,
        )
        self._options, self._rotary = options_of(blocks, None), RotaryTable(attend.rotary)
        self._layers = (
            layers_of(blocks, encoder.norm)
            if fit_one_loop(blocks)
            else LayerwiseEncoder(blocks, encoder.norm, self._options)
        )
        self._positions = PositionTable(encoder.positions, encoder.output_dim)
        segments = encoder.segments
        self._first_segment = None if segments is None else segments[0].detach().numpy()

    @staticmethod
    def refuse(encoder: Encoder) -> str | None:
        """Why an encoder cannot be prepared, or None if it can."""
        return why_not_prepared(list(encoder.layers))

    @torch.no_grad()
    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        segments: Int[Tensor, "B N"] | None = None,
        parts: Int[Tensor, "B N L"] | None = None,
        features: Float[Tensor, "B N F"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """See the encoder, whose attention can be watched and edited here as well."""
        reading = {"segments": segments, "parts": parts, "features": features}
        B, N = ids.shape
        if (N > _LONGEST and B == 1) or not current_observer() is current_editor() is None:
            states: Tensor = self.encoder(ids, lengths, **reading)
            return states
        lengths = torch.full((B,), N) if lengths is None else lengths
        if N > _LONGEST:
            return self._one_by_one(ids, lengths, reading)
        packing, inputs = Packing(lengths, N), np.zeros((0, 0), np.float32)
        if any(each is not None for each in reading.values()):
            inputs = packing.pack(self.encoder.embedded(ids, **reading)).numpy()
        places = self._positions.until(N)[:N]
        texts = kernels.Sources(
            tokens=packing.pack(ids).numpy(),
            begins=np.array([0, *accumulate(lengths.tolist())]),
            skipped=0,
            places=places if self._first_segment is None else places + self._first_segment,
            mixes_embeddings=False,
        )
        positions = kernels.EncoderPositions(self._rotary.until(N), N)
        if isinstance(self._layers, LayerwiseEncoder):
            layers, width = self._layers, self.output_dim
            x = inputs.copy() if inputs.size else layers.embed(texts, self._embeddings, width)[0]
            read = layers(x, texts.begins, positions)
            return packing.pad(torch.from_numpy(read))
        states = torch.empty(B, N, self.output_dim)
        weights = (self._embeddings, self._layers, self._options)
        rest = (texts, inputs, positions, *weights, states.numpy())
        parallel_blocks(B, lambda *part: kernels.encode_texts(*part, *rest))
        return states

    def _one_by_one(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        reading: dict[str, Tensor | None],
    ) -> Float[Tensor, "B N C"]:
        """The states of texts of which some are too long for the loop; each is read by itself."""
        states = torch.zeros(*ids.shape, self.output_dim)
        for b, length in enumerate(lengths.tolist()):
            inputs = {
                k: each if each is None else each[b : b + 1, :length] for k, each in reading.items()
            }
            states[b, :length] = self(ids[b : b + 1, :length], lengths[b : b + 1], **inputs)[0]
        return states
