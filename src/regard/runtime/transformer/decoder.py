"""A stack of decoder layers as a search drives it: much work in few calls.

A step is one compiled loop, the matrix products and the choice of the best tokens in it. Where
weights are small and rows many, threads have a block of rows each; else they share out each part of
the step.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.attention import at, lengths
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_observer
from regard.kernels.compiling import ParallelLoop
from regard.kernels.products.int8 import HAS_BYTES
from regard.kernels.search import Written
from regard.kernels.threads import FEWEST_ROWS, MOST_ROWS, parallel_blocks, team
from regard.kernels.transformer import layers as kernels
from regard.kernels.transformer.encoder import Embeddings, Layers
from regard.kernels.transformer.step import Going, decode_step, step_width
from regard.layers import MultiHeadAttention, TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.heads import cut
from regard.layers.positions import LearnedPositions, SinusoidalPositions
from regard.models.decoder import Decoder
from regard.models.transformer import Transformer
from regard.runtime.base import DecoderSteps, RankedTokens
from regard.runtime.products import (
    BYTES_A_THREAD,
    MOST_BYTES,
    Int8Embedding,
    bytes_of,
    embedding_table,
    pack_projections,
    part_of,
    size_of,
)
from regard.runtime.state import PreparedState, Store, trim_memory
from regard.runtime.transformer.encoder import EncoderLoop, PromptReader, projections_of
from regard.runtime.transformer.layers import (
    PositionTable,
    RotaryTable,
    norms_of,
    options_of,
    weights_of,
)

# Rounded weights up to so many bytes are gone through for each block of rows: of a base model.
_MOST_BYTES_OF_BYTES = 2**26
# Rows from which each thread goes through the weights of a large model by itself: products take
# most of the time then, and threads that share out each part wait for one another.
_FEWEST_ROWS_OF_LARGE = 64

# Tokens that one loop writes by itself at most: meanwhile nobody can interrupt it.
_MOST_STEPS = 16

_NO_IDS, _NO_FLAGS = np.zeros(0, np.int64), np.zeros(0, bool)
_NO_TABLE, _NO_MEMORY = np.zeros((0, 0), np.int64), np.zeros((0, 0, 0, 0), np.float32)
_NO_RANKING = RankedTokens(_NO_IDS, np.zeros((0, 0), np.float32), _NO_TABLE)
_NOTHING = (_NO_IDS, _NO_IDS, _NO_FLAGS, _NO_TABLE, _NO_IDS, np.zeros(0), _NO_FLAGS, _NO_IDS)
_ONE_STEP = Going(1, 0, 0, np.zeros(0, np.int32), Written(0, *_NOTHING))


class DecoderStack(DecoderSteps[PreparedState]):
    """Decoder layers, their embedding and their output, packed."""

    def __init__(
        self,
        model: Transformer | Decoder,
        blocks: Sequence[TransformerBlock],
        *,
        embedding: TokenEmbedding | Int8Embedding,
        positions: SinusoidalPositions | LearnedPositions | None,
        norm: nn.Module,
        embedding_norm: nn.Module | None = None,
        output_bias: Tensor | None = None,
    ) -> None:
        super().__init__(model, PreparedState, size_of(embedding), model.output, output_bias)
        self._blocks, self._embedding = list(blocks), embedding
        self._embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        attend = blocks[0].attend
        self._positions = PositionTable(positions, attend.query_dim)
        self._rotary, self._window = RotaryTable(attend.rotary), model.config.window
        has_alibi = model.config.positions == "alibi"
        self._options = options_of(self._blocks, model.config.num_heads if has_alibi else None)
        self._num_cross = sum(block.cross_attend is not None for block in blocks)
        self._cache_width = 2 * attend.num_key_heads * attend.head_dim
        self._norms = norms_of(self._blocks, norm)

    def begin(
        self,
        rows: int,
        memory: Float32[np.ndarray, "L B M W"] = _NO_MEMORY,
        lengths: Int64[np.ndarray, " B"] = _NO_IDS,
        *,
        length: int = 0,
    ) -> PreparedState:
        """The state before the first token, a row a source; callers fill ``length`` positions."""
        store = Store(len(self._blocks), rows, self._cache_width, filled=length)
        return PreparedState(
            sentences=np.arange(rows),
            owner=self._owner,
            store=store,
            ancestors=store.new_ancestors(),
            starts=np.zeros(rows, np.int32),
            length=length,
            memory=memory,
            lengths=lengths,
        )

    def _advance(
        self, token: Int64[np.ndarray, " R"], state: PreparedState, ranking: RankedTokens | None
    ) -> tuple[Float[Tensor, "R V"] | None, PreparedState]:
        state, rows = state.with_room(), len(token)
        inputs = (token, self._added_positions(state), self._past(state), state.length)
        queries, room, logits = self._buffers(rows)
        written = _NO_RANKING if ranking is None else ranking
        arguments = (inputs, queries, written, room, logits, _ONE_STEP)
        if ranking is not None and self._takes_blocks(rows):
            parallel_blocks(rows, self._decode, team(1), *arguments)
        else:
            self._decode(0, rows, team(self._threads(rows)), *arguments)
        mapped = None
        if ranking is None:
            mapped = torch.from_numpy(logits[:, : self._weights.table.outputs])
        if current_observer() is not None:
            for index, (block, query) in enumerate(zip(self._blocks, queries, strict=False)):
                if block.cross_attend is not None:
                    self._announce(index, block.cross_attend, torch.from_numpy(query), state)
        return mapped, state.after()

    def write(
        self,
        token: Int[Tensor, " R"],
        state: PreparedState,
        position: int,
        stop: int,
        hidden: Sequence[int],
        least: int,
        written: Written,
    ) -> tuple[Int[Tensor, " R"], PreparedState] | None:
        """Write tokens from ``position`` on by one loop; see ``WritingStep``."""
        ids, banned = self._read(token, state), self._hidden(hidden)
        rows = len(ids)
        is_one = not self._takes_blocks(rows) or (
            rows <= MOST_ROWS and torch.get_num_threads() == 1
        )
        is_plain = not state.is_padded and self._window is None and current_observer() is None
        steps = min(stop - position, _MOST_STEPS, self._positions.most - state.length)
        if steps < 1 or not is_one or not is_plain:
            return None
        state = state.with_room()
        steps = min(steps, state.store.cache.shape[1] - state.length)
        end = state.length + steps
        positions = self._positions.until(end)[state.length : end]
        past = self._past(state)._replace(rotary=self._rotary.until(end)[state.length : end])
        inputs = (ids.copy(), positions, past, state.length)
        likeliest = np.empty((rows, 1), np.int64)
        ranking = RankedTokens(banned, np.empty((rows, 1), np.float32), likeliest)
        going = Going(steps, position, least, state.store.slots[:rows], written)
        queries, room, logits = self._buffers(rows)
        arguments = (inputs, queries, ranking, room, logits, going)
        self._decode(0, rows, team(self._threads(rows)), *arguments)
        return torch.from_numpy(likeliest[:, 0]), state.advanced(int(written.counts[1]))

    @cached_property
    def prompt_reader(self) -> PromptReader:
        """A reader of prompts, by the same weights."""
        weights = self._weights
        maps = (weights.self_in, weights.self_out, weights.inner, weights.outer)
        norm = (weights.embedding_norm, weights.embedding_norm_bias)
        embeddings, layers = Embeddings(weights.embedding, *norm), Layers(*maps, *self._norms)
        loop = EncoderLoop(embeddings, layers, self._options)
        return PromptReader(loop, self._positions, self._rotary, window=self._window)

    def _takes_blocks(self, rows: int) -> bool:
        """Whether blocks of rows go through all weights, each by a thread."""
        return self._fits_a_core and rows >= 2 * FEWEST_ROWS

    def _buffers(self, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrays that a step writes: queries of cross-attention, numbers between parts, logits."""
        options, outputs = self._options, self._weights.table.bias.shape[1]
        queries = np.empty((self._num_cross, rows, options.heads * options.head_dim), np.float32)
        room = np.empty((rows, self._width), np.float32)
        return queries, room, np.empty((rows, outputs), np.float32)

    def _threads(self, rows: int) -> int:
        """Threads that share out a step of so many rows."""
        return min(torch.get_num_threads(), max(1, rows * self._bytes // BYTES_A_THREAD))

    def _is_worth_dividing(self, rows: int) -> bool:
        is_cheap = self._fits_a_core or self._is_in_bytes
        return rows >= (FEWEST_ROWS if is_cheap else _FEWEST_ROWS_OF_LARGE)

    def _added_positions(self, state: PreparedState) -> Float32[np.ndarray, "r C"]:
        """Position embedding of each row's token, or of all."""
        if self._positions.is_added:
            return self._at_positions(self._positions, state)
        return self._positions.until(state.length + 1)[:1]

    @staticmethod
    def _at_positions(
        table: PositionTable | RotaryTable, state: PreparedState
    ) -> Float32[np.ndarray, "r ..."]:
        """The table's row for each row's token, or one for all where none is padded."""
        length = state.length
        if not state.is_padded:
            return table.until(length + 1)[length : length + 1]
        positions = length - state.starts
        rows: np.ndarray = table.until(int(positions.max()) + 1)[positions]
        return rows

    def _past(self, state: PreparedState) -> kernels.DecoderCache:
        starts = state.starts
        if self._window is not None:
            starts = np.maximum(starts, np.int32(state.length - self._window))
        return kernels.DecoderCache(
            state.store.cache,
            state.ancestors,
            starts,
            state.memory,
            state.lengths,
            state.sentences,
            self._at_positions(self._rotary, state),
        )

    def _announce(
        self, layer: int, cross: MultiHeadAttention, query: Tensor, state: PreparedState
    ) -> None:
        """Announce cross-attention to an observer, as ``attend`` would."""
        memory, real, sentences = state.memory[layer], state.lengths, state.sentences
        if not np.array_equal(sentences, np.arange(len(memory))):
            memory, real = memory[sentences], real[sentences]
        key, _ = cut(torch.from_numpy(memory), ((cross.num_key_heads, cross.head_dim),) * 2)
        mask = lengths(torch.from_numpy(real))
        (queries,) = cut(query[:, None], ((cross.num_heads, cross.head_dim),))
        with at("cross", layer):
            announce(queries, key, CallOptions(cross.score, mask))

    @cached_property
    def _bytes(self) -> int:
        """Bytes of all weights that a row is multiplied with."""
        return bytes_of([self._output, *chain.from_iterable(projections_of(self._blocks))])

    @property
    def _is_in_bytes(self) -> bool:
        """Whether products are of bytes, which are worth reading the weights again."""
        return isinstance(self._output, Int8Embedding) and HAS_BYTES

    @cached_property
    def _fits_a_core(self) -> bool:
        """Whether each block of rows may go through all weights by itself."""
        return self._bytes <= (_MOST_BYTES_OF_BYTES if self._is_in_bytes else MOST_BYTES)

    @cached_property
    def _width(self) -> int:
        return step_width(self._weights, self._options)

    @cached_property
    def _decode(self) -> ParallelLoop:
        """The loop of a step over these weights."""
        return decode_step.bind(self._weights, self._options)

    @cached_property
    def _weights(self) -> kernels.Weights:
        """All weights packed at the first step."""
        maps = [pack_projections(list(map(part_of, kind))) for kind in projections_of(self._blocks)]
        table = pack_projections([part_of(self._output, bias=self._output_bias)])
        norm = weights_of(self._embedding_norm)
        parts = [*maps, *self._norms, table, embedding_table(self._embedding), *norm]
        weights = kernels.Weights._make(parts)
        trim_memory()  # of the weights that were packed
        return weights
