"""Encoders: of a Transformer, with its decoder's keys and values, and of prompts.

Small layers run in one compiled loop, for each block of texts. Where weights are too large for the
cache of a core, layers run one after the other, each product split among threads. Tokens of all
texts stand row after row, without padding, and a text's states do not depend on the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import torch
from jaxtyping import Float32, Int, Int64
from torch import Tensor, nn

from regard.kernels.threads import parallel_blocks, parallel_rows
from regard.kernels.transformer import encoder as kernels
from regard.kernels.transformer import layers as layer_kernels
from regard.kernels.transformer.encoder import Embeddings, EncoderPositions, Layers, Sources
from regard.kernels.transformer.layers import LayerOptions
from regard.layers.block import TransformerBlock
from regard.models.transformer import Transformer
from regard.runtime.products import (
    MOST_BYTES,
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
)

# The longest texts that one loop reads: it has all scores of a text and a head at once.
LONGEST = 1024
# Tokens of prompts that go through a layer together, so that its states take little memory.
_MOST_TOKENS = 2048


class LayerwiseEncoder:
    """The layers of an encoder one by one, and the last norm of pre-norm."""

    def __init__(
        self,
        maps: Sequence[Sequence[Callable[[Tensor], Tensor]]],
        norms: tuple[np.ndarray, np.ndarray],
        options: LayerOptions,
    ) -> None:
        self._maps, self._norms, self._options = list(zip(*maps, strict=True)), norms, options
        self._activate = activation_of(options)

    def embed(
        self, sources: Sources, embeddings: Embeddings, width: int
    ) -> tuple[Float32[np.ndarray, "R C"], Float32[np.ndarray, "R C"]]:
        """Vectors of all sources' tokens with positions, and without if values are those."""
        x = np.empty((len(sources.tokens), width), np.float32)
        embedded = np.zeros_like(x) if sources.mixes_embeddings else x
        arguments, count = (
            (sources, embeddings, self._options, x, embedded),
            len(sources.begins) - 1,
        )
        operations = 8 * x.size // max(1, count)
        parallel_rows(count, operations, kernels.embed_sources, *arguments)
        return x, embedded

    @torch.no_grad()
    def __call__(
        self,
        states: Float32[np.ndarray, "R C"],
        begins: Int64[np.ndarray, " B+1"],
        positions: EncoderPositions,
    ) -> Float32[np.ndarray, "R C"]:
        """Apply the layers to the tokens' vectors, in place; ``begins`` has each source's first."""
        *_, (answer, _) = self.by_layer(states, begins, positions)
        return answer

    def by_layer(
        self,
        states: Float32[np.ndarray, "R C"],
        begins: Int64[np.ndarray, " B+1"],
        positions: EncoderPositions,
    ) -> Iterator[tuple[Float32[np.ndarray, "R C"], Float32[np.ndarray, "R W"]]]:
        """Inputs of each layer, and its queries, keys and values, rotated.

        The remaining parts of a layer come with the next; the inputs become those of the next, in
        place, and those of the last its answer.
        """
        options, (rows, width) = self._options, states.shape
        norms = zip(*self._norms, strict=True)
        normed = np.empty_like(states) if options.is_pre else states
        inputs = torch.from_numpy(normed)

        def add(change: Tensor) -> None:
            added, (weight, bias) = change.numpy(), next(norms)
            arguments = (states, added, weight, bias, options, normed)
            parallel_rows(rows, 8 * width, layer_kernels.add_norm, *arguments)

        if options.is_pre:
            add(torch.zeros_like(inputs))
        for self_in, self_out, inner, outer in self._maps:
            projected = self_in(inputs).numpy()
            if positions.rotary.size:
                turned = (begins, positions, options, projected)
                parallel_rows(len(begins) - 1, 2**16, kernels.rotate_sources, *turned)
            yield normed, projected
            add(self_out(self._mixed(projected, begins, positions)))
            add(outer(self._activate(inner(inputs))))

    def _mixed(
        self,
        projected: Float32[np.ndarray, "R W"],
        begins: Int64[np.ndarray, " B+1"],
        positions: EncoderPositions,
    ) -> Tensor:
        """Attention of all heads of all sources, from queries, keys and values in one array."""
        options, sources = self._options, len(begins) - 1
        width = options.heads * options.head_dim
        context = torch.empty(len(projected), width, dtype=torch.float32)
        arguments = (begins, positions, options, projected, context.numpy())
        longest = int(np.diff(begins).max(initial=0))
        operations = 4 * longest * longest * options.head_dim
        parallel_rows(sources * options.heads, operations, kernels.attend_by_heads, *arguments)
        return context


def projections_of(blocks: Sequence[TransformerBlock]) -> list[list[nn.Linear | Int8Linear]]:
    """The linear maps of each kind, in the order of ``kernels.transformer.layers.Weights``.

    Those of cross-attention, the third and the fourth kind, are lists of none without it.
    """
    crosses = [cross for block in blocks if (cross := block.cross_attend) is not None]
    attends = [block.attend for block in blocks]
    return [
        [attend.query_key_value for attend in attends if attend.query_key_value is not None],
        [attend.output for attend in attends],
        [cross.query for cross in crosses],
        [cross.output for cross in crosses],
        [block.feed.inner for block in blocks],
        [block.feed.outer for block in blocks],
    ]


def layers_of(
    blocks: Sequence[TransformerBlock],
    last: nn.Module,
    options: LayerOptions,
    behind: Sequence[nn.Module] = (),
) -> Layers | LayerwiseEncoder:
    """An encoder's layers, and the norm behind them where it is pre-norm.

    They are for one loop, if all are small enough, the maps ``behind`` them too.
    """
    kinds, norms = [kind for kind in projections_of(blocks) if kind], norms_of(blocks, last)
    if bytes_of([*behind, *chain.from_iterable(kinds)]) > MOST_BYTES:
        return LayerwiseEncoder([list(map(projection_of, kind)) for kind in kinds], norms, options)
    maps = [pack_projections(list(map(part_of, kind))) for kind in kinds]
    return Layers._make([*maps, *norms])


class TransformerEncoder:
    """The encoder of a Transformer, and keys and values of its sources for every decoder layer."""

    def __init__(self, model: Transformer) -> None:
        blocks, config = list(model.encoder), model.config
        attentions = [cross for block in model.decoder if (cross := block.cross_attend) is not None]
        width = attentions[0].num_key_heads * attentions[0].head_dim
        alibi_heads = config.num_heads if config.positions == "alibi" else None
        self._options = options_of(blocks, alibi_heads)
        projects = [cross.key_value for cross in attentions if cross.key_value is not None]
        self._layers = layers_of(blocks, model.encoder_norm, self._options, projects)
        halves = (slice(width), slice(width, None)) if isinstance(self._layers, Layers) else ()
        of_memory = [
            pack_projections([part_of(projection, of) for projection in projects]) for of in halves
        ]
        self._projects = [] if halves else list(map(projection_of, projects))
        table, norm = embedding_table(model.source_embedding), weights_of(model.source_norm)
        self._embeddings = Embeddings(table, *norm, *of_memory)
        self._positions = PositionTable(model.positions, config.model_dim)
        self._rotary = RotaryTable(blocks[0].attend.rotary)
        self._reach, self._mixes_embeddings = config.window, config.values == "embeddings"
        self._begin_id = model.begin_id if config.source_begin else None
        self._shape, self._width = (len(attentions), 2 * width), config.model_dim

    def __call__(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources, side by side, for every decoder layer."""
        begin = [] if self._begin_id is None else [self._begin_id]
        rows = [
            [*begin, *ids[:length]]
            for ids, length in zip(source.tolist(), lengths.tolist(), strict=True)
        ]
        tokens = np.array(list(chain.from_iterable(rows)), np.int64)
        longest = source.shape[1] + len(begin)
        sources = Sources(
            tokens,
            np.array([0, *accumulate(map(len, rows))]),
            self._positions.until(longest),
            skipped=len(begin),
            mixes_embeddings=self._mixes_embeddings,
        )
        reach = longest if self._reach is None else self._reach
        positions = EncoderPositions(self._rotary.until(longest), reach, reach)
        layers, width = self._shape
        memory = np.zeros((layers, *source.shape, width), np.float32)
        if isinstance(self._layers, LayerwiseEncoder):
            self._read_by_layers(self._layers, sources, positions, memory)
            return memory
        inputs = (sources, positions, self._embeddings, self._layers, self._options, memory)
        parallel_blocks(len(rows), kernels.encode_sources, *inputs)
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
        for cache, project in zip(memory, self._projects, strict=True):
            projected_rows = project(states).numpy()
            if self._mixes_embeddings:
                projected_rows[:, half:] = project(torch.from_numpy(embedded)).numpy()[:, half:]
            for b, (begin, stop) in enumerate(pairwise(begins)):
                if (real := projected_rows[begin + sources.skipped : stop]).size:
                    cache[b, : len(real)] = real


class PromptReader:
    """Keys and values of a language model's prompts; its layers see earlier positions."""

    def __init__(
        self,
        layers: LayerwiseEncoder,
        embeddings: Embeddings,
        positions: PositionTable,
        rotary: RotaryTable,
        *,
        window: int | None,
    ) -> None:
        self._layers, self._embeddings = layers, embeddings
        self._positions, self._rotary, self._window = positions, rotary, window

    def __call__(
        self, prompts: Mapping[int, Int64[np.ndarray, " _"]], past: Float32[np.ndarray, "L T S W"]
    ) -> None:
        """Fill the last positions of each prompt's slot; its length is from 1 to ``LONGEST``."""
        part: dict[int, Int64[np.ndarray, " _"]] = {}
        for slot, prompt in prompts.items():
            if sum(map(len, part.values()), len(prompt)) > _MOST_TOKENS:
                self._read(part, past)
                part = {}
            part[slot] = prompt
        if part:
            self._read(part, past)

    def _read(
        self, prompts: Mapping[int, Int64[np.ndarray, " _"]], past: Float32[np.ndarray, "L T S W"]
    ) -> None:
        lengths, width = [len(prompt) for prompt in prompts.values()], past.shape[-1]
        sources = Sources(
            np.concatenate(list(prompts.values())),
            np.array([0, *accumulate(lengths)]),
            self._positions.until(max(lengths)),
        )
        reach = max(lengths) if self._window is None else self._window
        positions = EncoderPositions(self._rotary.until(max(lengths)), reach, 0)
        x, _ = self._layers.embed(sources, self._embeddings, self._positions.width)
        by_layer = self._layers.by_layer(x, sources.begins, positions)
        for cache, (_, projected) in zip(past, by_layer, strict=False):  # not the end of the last
            pairs = projected[:, -width:]  # behind the queries
            for slot, (begin, stop) in zip(prompts, pairwise(sources.begins), strict=True):
                cache[begin - stop :, slot] = pairs[begin:stop]
