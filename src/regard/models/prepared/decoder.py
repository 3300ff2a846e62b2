"""A stack of decoder layers as a search drives it: much work in few calls.

Where all weights are small, a step is one compiled loop for each block of rows, the matrix products
and the choice of the best tokens in it; what was rounded to int8 is multiplied in float32 there,
but for the last layer, which is large and left to torch. Else a step is matrix products by torch,
and compiled loops between them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor, nn

from regard.attention import at, lengths
from regard.attention.biases import alibi_slopes
from regard.attention.engine import blas
from regard.attention.engine.kernels import why_not
from regard.attention.observing import announce, current_observer
from regard.attention.scores import Dot, ScaledDot
from regard.attention.weighting import Softmax
from regard.layers import MultiHeadAttention, TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.feedforward import ACTIVATIONS
from regard.layers.heads import cut
from regard.layers.positions import LearnedPositions, SinusoidalPositions
from regard.layers.residual import Residual
from regard.models.prepared.linear import Linear, mapping
from regard.models.prepared.products import Int8Embedding, Int8Linear
from regard.models.prepared.sharing import by_rows, in_blocks
from regard.models.prepared.state import PreparedState

if TYPE_CHECKING:
    from regard.models.prepared import kernels

# Weights up to so many bytes stay in the cache of a core while it goes through them for its rows.
_MOST_BYTES = 2**25

_NORMS = (nn.LayerNorm, nn.RMSNorm)


def why_not_prepared(blocks: Sequence[TransformerBlock]) -> str | None:
    """What stands against preparing layers like these, or None."""
    block = blocks[0]
    scores = [type(each.score) for each in _attentions(block)]
    reasons = {
        "torch brings another BLAS than Intel's": blas.address_of_products() is None,
        "its positions are relative": block.distances is not None,
        "its score is no dot product": not {Dot, ScaledDot}.issuperset(scores),
        "its norm is that of a batch": not isinstance(_residuals(block)[0].norm, _NORMS),
        "it is not in float32 on a CPU": any(
            p.device.type != "cpu" or p.dtype != torch.float32 for p in block.parameters()
        ),
    }
    return why_not() or next((reason for reason, holds in reasons.items() if holds), None)


@runtime_checkable
class Output(Protocol):
    """A last layer."""

    def logits(self, states: Tensor, bias: Tensor | None = None) -> Tensor:
        """How well each state matches each token."""
        ...


class PreparedStack:
    """Decoder layers, their embedding and their output, ready for many steps.

    Args:
        blocks: The layers.
        embedding: Of tokens.
        positions: What is added to embeddings, if anything is.
        embedding_norm: Of the sum, if there is one.
        norm: What ends the stack.
        output: The last layer.
        output_bias: Its bias.
        window: Places before itself that a token sees; None is all.
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
        # Only here: what cannot be compiled cannot be imported.
        from regard.models.prepared import kernels, recurrence

        self._kernels, self._recurrence = kernels, recurrence
        self._blocks, self._embedding, self._positions = list(blocks), embedding, positions
        self._embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        # What is added to embeddings at each place; more of it is worked out as it is needed.
        attend, residual = _attentions(blocks[0])[0], blocks[0].attend_residual
        self._places = np.zeros((0, attend.query_dim), np.float32)
        self._output, self._output_bias, self._window = output, output_bias, window
        self._logits_of = _output_of(output, output_bias)
        self._shape = (attend.num_heads, attend.num_key_heads, attend.head_dim)
        is_recurrent = blocks[0].recur is not None
        self.width = 2 * attend.num_key_heads * attend.head_dim
        self.kept = attend.query_dim if is_recurrent else self.width
        self._rotary = attend.rotary
        self._is_in_halves = attend.rotary is not None and attend.rotary.pairs == "halves"
        first = residual.norm
        assert isinstance(first, _NORMS)
        self._options = options = kernels.Options(
            *self._shape,
            np.float32(attend.head_dim**-0.5 if isinstance(attend.score, ScaledDot) else 1.0),
            np.array([] if alibi_heads is None else alibi_slopes(alibi_heads), np.float32),
            np.float32(torch.finfo(torch.float32).eps if first.eps is None else first.eps),
            isinstance(first, nn.RMSNorm),
            residual.order == "pre",
            _place_of(blocks[0].feed.activation, kernels.ACTIVATIONS),
            attend.head_dim // 2 if self._is_in_halves else 1,
            is_recurrent,
        )
        # In the order in which they are met; of pre-norm, the last one ends the stack.
        met = [each.norm for block in self._blocks for each in _residuals(block)]
        self._norms = [_numbers_of(each) for each in [*met, *([norm] if options.is_pre else [])]]
        self._layers = _layers_of(self._blocks)
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
        logits, state = self._logits(token, state.with_room())
        return torch.log_softmax(logits, dim=-1), state

    @torch.no_grad()
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
        state = state.with_room()
        never = np.array(hidden, np.int64)
        values = np.empty((len(token), count), np.float32)
        tokens = np.empty((len(token), count), np.int64)
        logits = None
        if self._weights is None:
            logits, state = self._logits(token, state)
        else:
            token = token if state.pending is None else state.pending
            last, weights, past = token.numpy(), self._weights, self._past(state)
            places = self._places_of(state)
            is_whole, width = len(weights.table) > 0, weights.embedding.shape[1]
            states = np.empty((0 if is_whole else len(token), width), np.float32)
            queries = self._room_for_queries(len(token))

            def go(first: int, stop: int) -> None:
                self._kernels.whole_step(
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

            in_blocks(len(token), go)
            self._announce_all(state, queries)
            state = state.after(map(self._in_heads, queries))
            if not is_whole:
                logits = self._logits_of(torch.from_numpy(states))
        if logits is not None:
            found = logits.numpy()

            def choose(first: int, stop: int) -> None:
                self._kernels.best_tokens(first, stop, found, never, values, tokens)

            by_rows(len(token), 4 * found.shape[1], choose)
        return torch.from_numpy(values), torch.from_numpy(tokens), state

    def _embedded(self, token: Tensor, state: PreparedState) -> Tensor:
        embedded = self._embedding(token if state.pending is None else state.pending)
        states = embedded + torch.from_numpy(self._places_of(state))
        normed: Tensor = self._embedding_norm(states)
        return normed

    def _places_of(self, state: PreparedState) -> Float32[np.ndarray, "r C"]:
        """What is added to the embedding of each row's token, or of all."""
        if self._positions is None:
            return np.zeros((1, self._places.shape[1]), np.float32)
        places = state.length - state.starts
        while (known := len(self._places)) <= places.max(initial=0):
            nothing = torch.zeros(1, max(1, known, 64), self._places.shape[1])
            if isinstance(self._positions, LearnedPositions):
                nothing = nothing[:, : max(1, len(self._positions.table) - known)]
            more = self._positions(nothing, first=known)[0].detach().numpy()
            self._places = np.concatenate([self._places, more])
        if state.starts.any():
            rows: np.ndarray = self._places[places]
            return rows
        one: np.ndarray = self._places[state.length : state.length + 1]
        return one

    def _past(self, state: PreparedState) -> "kernels.Past":
        starts = state.starts
        if self._window is not None:
            starts = np.maximum(starts, np.int32(state.length - self._window))
        return self._kernels.Past(
            state.store.kept,
            state.ancestors,
            starts,
            state.memory,
            state.lengths,
            state.sentences,
            self._waves_of(state.length),
        )

    def _waves_of(self, place: int) -> Float32[np.ndarray, "2 P"]:
        """Sines and cosines by which queries and keys of a place are turned; none if they are not.

        They are what becomes of pairs of one and zero.
        """
        if self._rotary is None:
            return np.zeros((2, 0), np.float32)
        places = np.arange(self._rotary.head_dim)
        is_first = places < len(places) // 2 if self._is_in_halves else places % 2 == 0
        turned = self._rotary(torch.from_numpy(is_first[None]).float(), first=place)[0].numpy()
        return np.stack([turned[~is_first], turned[is_first]])

    def _logits(self, token: Tensor, state: PreparedState) -> tuple[Tensor, PreparedState]:
        """The logits after a step, layer by layer."""
        kernels, options, now = self._kernels, self._options, state.length
        states, past = self._embedded(token, state), self._past(state)
        normed = torch.empty_like(states) if options.is_pre else states
        rows, x, y = len(token), states.numpy(), normed.numpy()
        room = max(now + 1, state.memory.shape[2])
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

            by_rows(rows, 4 * seen * mixed.shape[1], go)
            return mixed

        def recurred(projected: Tensor, bias: np.ndarray, store: np.ndarray) -> Tensor:
            told, given = projected.numpy(), torch.empty_like(states)
            out = given.numpy()

            def go(first: int, stop: int) -> None:
                recur = self._recurrence.recur
                recur(first, stop, told, bias, store, state.ancestors, now, out)

            by_rows(rows, 32 * given.shape[1], go)
            return given

        queries: list[np.ndarray] = []
        for place, layer in enumerate(self._layers):
            kept = state.store.kept[place]
            if layer.gate_bias is not None:
                add(recurred(layer.own(normed), layer.gate_bias, kept))
            else:
                add(layer.own_out(looked(kernels.look_back, layer.own(normed), kept, now + 1)))
            if layer.look is not None:
                query, memory = layer.ask(normed), state.memory[place]
                queries.append(self._in_heads(query.numpy()))
                self._announce(place, layer.look, query, state)
                mixed = looked(kernels.look_at_memory, query, memory, memory.shape[1])
                add(layer.ask_out(mixed))
            add(layer.outer(layer.activation(layer.inner(normed))))
        return self._logits_of(normed), state.after(queries)

    def _announce_all(self, state: PreparedState, queries: Float32[np.ndarray, "L R W"]) -> None:
        """Show whoever observes what each layer asked."""
        if current_observer() is None:
            return
        for place, (layer, query) in enumerate(zip(self._layers, queries, strict=False)):
            if layer.look is not None:
                self._announce(place, layer.look, torch.from_numpy(query), state)

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
            announce(asked, key, look.score, seen, None, Softmax())

    def _room_for_queries(self, rows: int) -> Float32[np.ndarray, "L R W"]:
        """Where one loop puts what layers ask the sources, if they do."""
        layers = sum(layer.look is not None for layer in self._layers)
        return np.empty((layers, rows, self._options.heads * self._options.head_dim), np.float32)

    def _in_heads(self, queries: Float32[np.ndarray, "R W"]) -> Float32[np.ndarray, "R H D"]:
        heads: np.ndarray = queries.reshape(len(queries), self._options.heads, -1)
        return heads

    def _all_weights(self) -> "kernels.Weights | None":
        """All weights in a few arrays, if one loop can take them; of an int8 output it has none."""
        output, embedding = self._output, self._embedding
        if self._options.activation < 0 or not isinstance(output, TokenEmbedding | Int8Embedding):
            return None
        maps: list[list[nn.Linear]] = []
        for several in zip(*(layer.maps for layer in self._layers), strict=True):
            known = [each for each in several if isinstance(each, nn.Linear)]
            if any(each is not None for each in several) and len(known) < len(several):
                return None
            maps.append(known)
        is_rounded = isinstance(output, Int8Embedding)
        table = torch.zeros(0, 0) if is_rounded else _table_of(output)
        if sum(each.weight.nbytes for known in maps for each in known) + table.nbytes > _MOST_BYTES:
            return None
        stacked = [
            (
                _stacked([each.weight for each in group], 3),
                _stacked([each.bias for each in group], 2),
            )
            for group in maps
        ]
        bias = self._output_bias
        (own, own_bias), (own_out, own_out_bias), *others = stacked
        if self._options.is_recurrent:
            own_bias = np.stack(
                [each for layer in self._layers if (each := layer.gate_bias) is not None]
            )
        (ask, ask_bias), (ask_out, ask_out_bias), (inner, inner_bias), (outer, outer_bias) = others
        embedding_norm, embedding_norm_bias = _numbers_of(self._embedding_norm)
        return self._kernels.Weights(
            own=own,
            own_bias=own_bias,
            own_out=own_out,
            own_out_bias=own_out_bias,
            ask=ask,
            ask_bias=ask_bias,
            ask_out=ask_out,
            ask_out_bias=ask_out_bias,
            inner=inner,
            inner_bias=inner_bias,
            outer=outer,
            outer_bias=outer_bias,
            norms=np.stack([weight for weight, _ in self._norms]),
            norm_biases=np.stack([bias for _, bias in self._norms]),
            table=table.numpy(),
            table_bias=np.zeros(0, np.float32) if bias is None else bias.detach().numpy(),
            embedding=_table_of(embedding).numpy(),
            embedding_scale=np.float32(embedding.scale),
            embedding_norm=embedding_norm,
            embedding_norm_bias=embedding_norm_bias,
        )


class _Layer(NamedTuple):
    """What multiplies in a layer.

    ``maps`` are the same as the first six; ``gate_bias`` is there where it is recurrent; ``look``
    says how memory is looked at, if it is.
    """

    own: Callable[[Tensor], Tensor]
    own_out: Callable[[Tensor], Tensor]
    ask: Callable[[Tensor], Tensor]
    ask_out: Callable[[Tensor], Tensor]
    inner: Callable[[Tensor], Tensor]
    outer: Callable[[Tensor], Tensor]
    activation: Callable[[Tensor], Tensor]
    gate_bias: np.ndarray | None
    look: MultiHeadAttention | None
    maps: Sequence[nn.Module | None]


def _layers_of(blocks: Sequence[TransformerBlock]) -> list[_Layer]:
    """What multiplies: in float32 where int8 would save next to nothing, since it costs less."""
    maps = [_maps_of(block) for block in blocks]
    rounded = [each for several in maps for each in several if isinstance(each, Int8Linear)]
    if sum(4 * each.in_features * each.out_features for each in rounded) <= _MOST_BYTES:
        maps = [
            [each.dequantised() if isinstance(each, Int8Linear) else each for each in several]
            for several in maps
        ]
    return [_layer_of(*each) for each in zip(blocks, maps, strict=True)]


def _maps_of(block: TransformerBlock) -> list[nn.Module | None]:
    """The linear maps of a layer, in the order of ``kernels.Weights``."""
    attend, look, recur = block.attend, block.look, block.recur
    return [
        attend.query_key_value if attend is not None else recur and recur.gate_value,
        None if attend is None else attend.output,
        None if look is None else look.query,
        None if look is None else look.output,
        block.feed.inner,
        block.feed.outer,
    ]


def _layer_of(block: TransformerBlock, maps: Sequence[nn.Module | None]) -> _Layer:
    own, own_out, ask, ask_out, inner, outer = map(mapping, maps)
    return _Layer(
        own,
        own_out,
        ask,
        ask_out,
        inner,
        outer,
        activation=block.feed.activation,
        gate_bias=None if block.recur is None else block.recur.gate_bias.detach().numpy(),
        look=block.look,
        maps=maps,
    )


def _table_of(embedding: TokenEmbedding | Int8Embedding) -> Tensor:
    """Its vectors, before they are scaled."""
    if isinstance(embedding, Int8Embedding):
        return embedding.dequantised()
    return embedding.weight.detach()


def _output_of(output: Output, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """What makes logits of states."""
    if isinstance(output, TokenEmbedding):
        return Linear(output.weight, bias)
    return lambda states: output.logits(states, bias)


def _place_of(activation: Callable[[Tensor], Tensor], names: Sequence[str]) -> int:
    """Which of the names is the activation's; −1 for none."""
    known = [ACTIVATIONS[name] for name in names]
    return known.index(activation) if activation in known else -1


def _attentions(block: TransformerBlock) -> list[MultiHeadAttention]:
    return [each for each in (block.attend, block.look) if each is not None]


def _residuals(block: TransformerBlock) -> list[Residual]:
    all_three = (block.attend_residual, block.look_residual, block.feed_residual)
    return [each for each in all_three if each is not None]


def _numbers_of(norm: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """The weight and the bias of a norm; without entries it has none."""
    if isinstance(norm, nn.Identity):
        return (np.zeros(0, np.float32),) * 2
    assert isinstance(norm, _NORMS)
    bias = getattr(norm, "bias", None)
    weight = norm.weight.detach().numpy()
    return weight, weight[:0] if bias is None else bias.detach().numpy()


def _stacked(parts: Sequence[Tensor | None], axes: int) -> np.ndarray:
    """The parts one on the other; no entries where there are none."""
    known = [part.detach() for part in parts if part is not None]
    return torch.stack(known).numpy() if known else np.zeros((0,) * axes, np.float32)
