"""A stack of decoder layers as a search drives it: much work in few calls.

Where all weights are small, a step is one compiled loop for each block of rows, the matrix products
and the choice of the best tokens in it. Else a step is matrix products, each shared out among
threads, and compiled loops between them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor, nn

from regard.attention import at, lengths
from regard.attention.engine.options import CallOptions
from regard.attention.observing import announce, current_observer
from regard.kernels.products.int8 import HAS_BYTES
from regard.kernels.products.packed import OUTPUTS
from regard.kernels.threads import parallel_blocks, parallel_rows
from regard.kernels.transformer import decoder as kernels
from regard.layers import MultiHeadAttention, TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.heads import cut
from regard.layers.positions import LearnedPositions, SinusoidalPositions
from regard.runtime.products import projections
from regard.runtime.products.int8 import Int8Embedding, Int8Linear
from regard.runtime.products.linear import Linear, projection_of
from regard.runtime.state import PreparedState
from regard.runtime.transformer.layers import (
    MOST_BYTES,
    PositionTable,
    RotaryTable,
    activation_of,
    attentions,
    bytes_of,
    norms_of,
    numbers_of,
    options_of,
)

# Rounded weights up to so many bytes are gone through for each block of rows: of a base model.
_MOST_BYTES_OF_BYTES = 2**26


@runtime_checkable
class Output(Protocol):
    """A last layer."""

    def logits(self, states: Tensor, bias: Tensor | None = None) -> Tensor:
        """How well each state matches each token."""
        ...


class DecoderStack:
    """Decoder layers, their embedding and their output, ready for many steps.

    Args:
        blocks: The layers.
        embedding: Of tokens.
        positions: What is added to embeddings, if anything is.
        embedding_norm: Of the sum, if there is one.
        norm: What ends the stack.
        output: The last layer.
        output_bias: Its bias.
        window: Positions before itself that a token sees; None is all.
        alibi_heads: How many heads have ALiBi's slopes; None is none.
    """

    def __init__(
        self,
        blocks: Sequence[TransformerBlock],
        *,
        embedding: TokenEmbedding | Int8Embedding,
        positions: SinusoidalPositions | LearnedPositions | None,
        embedding_norm: nn.Module | None,
        norm: nn.Module,
        output: Output,
        output_bias: Tensor | None,
        window: int | None,
        alibi_heads: int | None,
    ) -> None:
        self._blocks, self._embedding = list(blocks), embedding
        self._embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        attend = attentions(blocks[0])[0]
        self._places, self._rotary = (
            PositionTable(positions, attend.query_dim),
            RotaryTable(attend.rotary),
        )
        self._output, self._output_bias, self._window = output, output_bias, window
        self._options = options_of(self._blocks, alibi_heads)
        self._looks = sum(block.look is not None for block in blocks)
        self.width = 2 * attend.num_key_heads * attend.head_dim
        self._norms = norms_of(self._blocks, norm)
        self._weights = self._all_weights()

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self._blocks)

    @torch.no_grad()
    def __call__(
        self, token: Int[Tensor, " R"], state: PreparedState
    ) -> tuple[Float[Tensor, "R V"], PreparedState]:
        """Log-probabilities of the next token, and the state after ``token``."""
        states, state = self._last_states(token, state.with_room())
        return torch.log_softmax(self._logits_of(states), dim=-1), state

    def best(
        self, token: Int[Tensor, " R"], state: PreparedState, count: int, hidden: Sequence[int]
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"], PreparedState]:
        """The ``count`` likeliest next tokens of each row, likeliest first.

        Args:
            token: The last of each row.
            state: The state before it.
            count: How many are wanted.
            hidden: Tokens that are none of them.

        Returns:
            Their log-probabilities, which tokens they are, and the state after ``token``.
        """
        state, rows = state.with_room(), token.shape[0]
        never = np.array(hidden, np.int64)
        values = np.empty((rows, count), np.float32)
        tokens = np.empty((rows, count), np.int64)
        seen = None
        if self._weights is None:
            seen, state = self._last_states(token, state)
        else:
            token = token if state.pending is None else state.pending
            last, weights, past = token.numpy(), self._weights, self._past(state)
            places = self._places_of(state)
            is_whole, width = weights.table.outputs > 0, weights.norms.shape[1]
            states = np.empty((0 if is_whole else rows, width), np.float32)
            queries = self._room_for_queries(rows)

            def go(first: int, stop: int) -> None:
                kernels.decode_step(
                    first,
                    stop,
                    last,
                    places,
                    weights,
                    past,
                    state.length,
                    self._options,
                    queries,
                    states,
                    never,
                    values,
                    tokens,
                )

            parallel_blocks(rows, go)
            self._announce_all(state, queries)
            heads = (self._options.heads, self._options.head_dim)
            state = state.after(list(queries.reshape(*queries.shape[:2], *heads)))
            if not is_whole:
                seen = torch.from_numpy(states)
        if seen is not None:
            with torch.no_grad():
                found = self._logits_of(seen).numpy()

            def choose(first: int, stop: int) -> None:
                kernels.best_tokens(first, stop, found, never, values, tokens)

            parallel_rows(rows, 4 * found.shape[1], choose)
        return torch.from_numpy(values), torch.from_numpy(tokens), state

    def _embedded(self, token: Tensor, state: PreparedState) -> Tensor:
        embedded = self._embedding(token if state.pending is None else state.pending)
        states = embedded + torch.from_numpy(self._places_of(state))
        normed: Tensor = self._embedding_norm(states)
        return normed

    def _places_of(self, state: PreparedState) -> Float32[np.ndarray, "r C"]:
        """Position embedding of each row's token, or of all."""
        return (
            self._of_places(self._places, state)
            if self._places.is_added
            else (self._places.until(state.length + 1)[:1])
        )

    @staticmethod
    def _of_places(
        table: PositionTable | RotaryTable, state: PreparedState
    ) -> Float32[np.ndarray, "r ..."]:
        """Position embedding of each row, or of all where none is padded."""
        places = state.length - state.starts if state.starts.any() else np.array([state.length])
        rows: np.ndarray = table.until(int(places.max()) + 1)[places]
        return rows

    def _past(self, state: PreparedState) -> kernels.DecoderCache:
        starts = state.starts
        if self._window is not None:
            starts = np.maximum(starts, np.int32(state.length - self._window))
        return kernels.DecoderCache(
            state.store.kept,
            state.ancestors,
            starts,
            state.memory,
            state.lengths,
            state.sentences,
            self._of_places(self._rotary, state),
        )

    @torch.no_grad()
    def _last_states(self, token: Tensor, state: PreparedState) -> tuple[Tensor, PreparedState]:
        """Final states of a step, computed layer by layer."""
        options, now = self._options, state.length
        states, past = self._embedded(token, state), self._past(state)
        normed = torch.empty_like(states) if options.is_pre else states
        rows, x, y = len(token), states.numpy(), normed.numpy()
        room = max(now + 1, state.memory.shape[2]) + OUTPUTS
        norms = iter(self._norms)
        if options.is_pre:
            kernels.norm(0, rows, x, *next(norms), options, y)

        def add(change: Tensor) -> None:
            kernels.add_norm(0, rows, x, change.numpy(), *next(norms), options, y)

        def looked(
            look: Callable[..., None], query: Tensor, store: np.ndarray, seen: int
        ) -> Tensor:
            asked, mixed = query.numpy(), torch.empty(rows, options.heads * options.head_dim)
            out = mixed.numpy()

            def go(first: int, stop: int) -> None:
                scores = np.empty((options.heads, room), np.float32)
                look(first, stop, asked, store, past, now, options, scores, out)

            parallel_rows(rows, 4 * seen * mixed.shape[1], go)
            return mixed

        queries: list[np.ndarray] = []
        for place, layer in enumerate(self._layers):
            kept = state.store.kept[place]
            add(layer.own_out(looked(kernels.attend_to_past, layer.own(normed), kept, now + 1)))
            if layer.look is not None:
                query, memory = layer.ask(normed), state.memory[place]
                queries.append(self._in_heads(query.numpy()))
                self._announce(place, layer.look, query, state)
                mixed = looked(kernels.attend_to_memory, query, memory, memory.shape[1])
                add(layer.ask_out(mixed))
            add(layer.outer(layer.activation(layer.inner(normed))))
        return normed, state.after(queries)

    def _announce_all(self, state: PreparedState, queries: Float32[np.ndarray, "L R W"]) -> None:
        """Show whoever observes what each layer asked."""
        if current_observer() is None:
            return
        for place, (block, query) in enumerate(zip(self._blocks, queries, strict=False)):
            if block.look is not None:
                self._announce(place, block.look, torch.from_numpy(query), state)

    def _announce(
        self, layer: int, look: MultiHeadAttention, query: Tensor, state: PreparedState
    ) -> None:
        """Show whoever observes what is looked at in the source, as ``attend`` would."""
        if current_observer() is None:
            return
        memory, real, sentences = state.memory[layer], state.lengths, state.sentences
        if not np.array_equal(sentences, np.arange(len(memory))):
            memory, real = memory[sentences], real[sentences]
        key, _ = cut(torch.from_numpy(memory), ((look.num_key_heads, look.head_dim),) * 2)
        seen = lengths(torch.from_numpy(real))
        (asked,) = cut(query[:, None], ((look.num_heads, look.head_dim),))
        with at("cross", layer):
            announce(asked, key, CallOptions(look.score, seen))

    def _room_for_queries(self, rows: int) -> Float32[np.ndarray, "L R W"]:
        """Where one loop puts what layers ask the sources, if they do."""
        return np.empty(
            (self._looks, rows, self._options.heads * self._options.head_dim), np.float32
        )

    def _in_heads(self, queries: Float32[np.ndarray, "R W"]) -> Float32[np.ndarray, "R H D"]:
        heads: np.ndarray = queries.reshape(len(queries), self._options.heads, -1)
        return heads

    @cached_property
    def _layers(self) -> "list[_Layer]":
        """Products of steps outside the compiled loop; most searches of a small model need none."""
        return [_layer_of(block, self._options) for block in self._blocks]

    @cached_property
    def _logits_of(self) -> Callable[[Tensor], Tensor]:
        """Product of the output layer."""
        output, bias = self._output, self._output_bias
        if isinstance(output, TokenEmbedding):
            return Linear(output.weight, bias)
        return lambda states: output.logits(states, bias)

    def _all_weights(self) -> kernels.Weights | None:
        """All weights in a few arrays, if one loop can take them."""
        output, embedding = self._output, self._embedding
        if self._options.activation < 0 or not isinstance(output, TokenEmbedding | Int8Embedding):
            return None
        parts = [_projections_of(block) for block in self._blocks]
        # Products of bytes are worth reading the weights again for each block of rows.
        is_in_bytes = isinstance(output, Int8Embedding) and HAS_BYTES
        most = _MOST_BYTES_OF_BYTES if is_in_bytes else MOST_BYTES
        if bytes_of([output, *(each for several in parts for each in several)]) > most:
            return None
        own, own_out, ask, ask_out, inner, outer = (
            projections.pack_projections(
                [projections.part_of(each) for each in several if each is not None]
            )
            for several in zip(*parts, strict=True)
        )
        embedding_norm, embedding_norm_bias = numbers_of(self._embedding_norm)
        return kernels.Weights(
            own=own,
            own_out=own_out,
            ask=ask,
            ask_out=ask_out,
            inner=inner,
            outer=outer,
            norms=np.stack([weight for weight, _ in self._norms]),
            norm_biases=np.stack([bias for _, bias in self._norms]),
            table=projections.pack_projections([projections.output_of(output, self._output_bias)]),
            embedding=projections.embedding_table(embedding),
            embedding_norm=embedding_norm,
            embedding_norm_bias=embedding_norm_bias,
        )


class _Layer(NamedTuple):
    """Products of a layer; ``look`` says how memory is looked at, if it is."""

    own: Callable[[Tensor], Tensor]
    own_out: Callable[[Tensor], Tensor]
    ask: Callable[[Tensor], Tensor]
    ask_out: Callable[[Tensor], Tensor]
    inner: Callable[[Tensor], Tensor]
    outer: Callable[[Tensor], Tensor]
    activation: Callable[[Tensor], Tensor]
    look: MultiHeadAttention | None


def _projections_of(block: TransformerBlock) -> list[nn.Linear | Int8Linear | None]:
    """The linear maps of a layer, in the order of ``kernels.transformer.decoder.Weights``."""
    look = block.look
    return [
        block.attend.query_key_value,
        block.attend.output,
        None if look is None else look.query,
        None if look is None else look.output,
        block.feed.inner,
        block.feed.outer,
    ]


def _layer_of(block: TransformerBlock, options: kernels.Options) -> _Layer:
    own, own_out, ask, ask_out, inner, outer = map(projection_of, _projections_of(block))
    return _Layer(
        own,
        own_out,
        ask,
        ask_out,
        inner,
        outer,
        activation=activation_of(block, options),
        look=block.look,
    )
