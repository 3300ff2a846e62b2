"""Recurrent decoders and encoders: a step, or a pass, is one compiled loop a block of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.kernels import numbers
from regard.kernels import recurrent as kernels
from regard.kernels.products import packed
from regard.kernels.threads import FEWEST_ROWS, parallel_blocks
from regard.kernels.transformer.layers import best_tokens
from regard.layers import RecurrentEncoder, TokenEmbedding
from regard.layers.inputs import row_lengths, valid_row_array
from regard.layers.recurrent import gates_of_lstm
from regard.runtime.base import DecoderSteps, PackedState, RankedTokens
from regard.runtime.products import MOST_BYTES


class Layer(NamedTuple):
    """Weights of one recurrent layer for its input and its state, gates concatenated."""

    input: Float[Tensor, "G I"]
    input_bias: Float[Tensor, " G"]
    hidden: Float[Tensor, "G h"]
    hidden_bias: Float[Tensor, " G"]


def layers_of(recurrence: nn.RNNBase, suffix: str = "") -> list[Layer]:
    """Layers of one direction, gates in the order of ``layers.recurrent.RecurrentCell``."""

    def gates(name: str) -> Tensor:
        weights = recurrence.get_parameter(f"{name}{suffix}")
        return gates_of_lstm(weights) if recurrence.mode == "LSTM" else weights

    names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    return [
        Layer(*(gates(f"{name}_l{layer}") for name in names))
        for layer in range(recurrence.num_layers)
    ]


def _pack_layers(layers: Sequence[Layer]) -> kernels.LayerWeights:
    """Pack the weights of layers."""
    inputs, input_biases, hidden, hidden_biases = (
        [numbers(weight) for weight in of] for of in zip(*layers, strict=True)
    )
    return kernels.LayerWeights(
        first=packed.pack(inputs[0]),
        later=packed.stack_packed(inputs[1:], hidden[0].shape[1]),
        input_biases=packed.stack_padded(input_biases),
        hidden=packed.stack_packed(hidden),
        hidden_biases=packed.stack_padded(hidden_biases),
    )


def pack_weights(
    layers: Sequence[Layer],
    embedding: TokenEmbedding,
    readout: Float[Tensor, "O J"] | None,
    readout_bias: Float[Tensor, " O"] | None,
    *,
    query_map: Float[Tensor, "A h"] | None = None,
    units: Float[Tensor, " A"] | None = None,
) -> kernels.RecurrentWeights:
    """Pack all weights but the output's; ``units`` weigh the hidden units of additive scores."""
    return kernels.RecurrentWeights(
        embedding=numbers(embedding.weight),
        embedding_scale=np.float32(embedding.scale),
        layers=_pack_layers(layers),
        query_map=packed.pack(_or_nothing(query_map, axes=2)),
        units=_or_nothing(units, axes=1),
        readout=packed.pack(_or_nothing(readout, axes=2)),
        readout_bias=packed.pad(_or_nothing(readout_bias, axes=1)),
    )


def _or_nothing(tensor: Tensor | None, *, axes: int) -> Float32[np.ndarray, "..."]:
    """The numbers of a tensor; of None, an array without entries."""
    return numbers(torch.zeros((0,) * axes) if tensor is None else tensor)


@dataclass(frozen=True, eq=False)
class RecurrentState(PackedState):
    """Decoder state between two tokens."""

    carried: Float32[np.ndarray, "P W"]  # of all layers, and the answer if the next step reads it
    indices: Int64[np.ndarray, " R"]  # of each row in ``carried``
    sources: kernels.Memory

    @classmethod
    def begin(
        cls,
        owner: nn.Module,
        carried: Float[Tensor, "R W"],
        sources: kernels.Memory,
        pending: Int[Tensor, " R"] | None = None,
    ) -> "RecurrentState":
        """The state of rows that each have a source of their own, if there are any."""
        rows = np.arange(len(carried))
        return cls(rows, owner, carried.contiguous().numpy(), rows, sources, pending=pending)

    def select(self, rows: Int[Tensor, " K"]) -> "RecurrentState":
        """The state of these rows, in this order; their tensors are not copied."""
        chosen = valid_row_array(rows, self.num_rows)
        return replace(
            self,
            indices=self.indices[chosen],
            sentences=self.sentences[chosen],
            pending=None if self.pending is None else self.pending[rows],
        )

    def divided(self, rows: Int[Tensor, " K"]) -> "RecurrentState":
        """The state of these rows: a step changes nothing of the state before it."""
        return self.select(rows)


# Announces to an observer the attention of a step, given the states before it and after it.
Announce = Callable[[RecurrentState, RecurrentState], None]


class RecurrentDecoder(DecoderSteps[RecurrentState]):
    """Recurrent layers, embedding and output, packed; ``announce`` is called after each step."""

    def __init__(
        self,
        owner: nn.Module,
        weights: kernels.RecurrentWeights,
        options: kernels.RecurrentOptions,
        *,
        output: TokenEmbedding,
        output_bias: Tensor | None,
        announce: Announce | None = None,
    ) -> None:
        super().__init__(owner, RecurrentState, len(weights.embedding), output, output_bias)
        self._options, self._announce = options, announce
        self._outputs, self._width = output.weight.shape
        # A large table is gone through once for all rows.
        self._has_logits = output.weight.nbytes <= MOST_BYTES
        self._weights = weights
        if self._has_logits:
            bias = torch.zeros(self._outputs) if output_bias is None else output_bias
            table, table_bias = packed.pack(numbers(output.weight)), packed.pad(numbers(bias))
            self._weights = weights._replace(table=table, table_bias=table_bias)

    def _advance(
        self, token: Int64[np.ndarray, " R"], state: RecurrentState, ranking: RankedTokens | None
    ) -> tuple[Float[Tensor, "R V"] | None, RecurrentState]:
        rows = len(token)
        after = np.empty((rows, state.carried.shape[1]), np.float32)
        answers = np.empty((rows, self._width), np.float32)
        logits = np.empty((rows, self._outputs if self._has_logits else 0), np.float32)
        inputs = (token, state.carried, state.indices, state.sentences)
        weights = (self._weights, state.sources, self._options)
        parallel_blocks(rows, kernels.step, *inputs, *weights, after, answers, logits)
        if ranking is not None and self._has_logits:
            parallel_blocks(rows, best_tokens, logits, self._outputs, *ranking)
        successor = replace(state, carried=after, indices=np.arange(rows), pending=None)
        if self._announce is not None:
            self._announce(state, successor)
        if not self._has_logits:
            return self._logits_of(torch.from_numpy(answers)), successor
        return None if ranking is not None else torch.from_numpy(logits), successor

    def _is_worth_dividing(self, rows: int) -> bool:
        return self._has_logits and rows >= FEWEST_ROWS


class PreparedEncoder(nn.Module):
    """A recurrent encoder, in evaluation mode, as one compiled loop for each block of sentences."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        recurrence = encoder.recurrence
        self.input_dim, self.hidden_dim = recurrence.input_size, encoder.hidden_dim
        self._cell = kernels.CELLS.index(recurrence.mode)
        directions = [_pack_layers(layers_of(recurrence, suffix)) for suffix in ("", "_reverse")]
        self._weights = kernels.LayerWeights(*map(np.stack, zip(*directions, strict=True)))

    @torch.no_grad()
    def forward(
        self, inputs: Float[Tensor, "B S X"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S Y"], Float[Tensor, "B Y"]]:
        lengths = row_lengths("lengths", lengths, "inputs", inputs.shape[:2])
        if inputs.shape[2] != self.input_dim or inputs.dtype != torch.float32:
            raise ShapeError(
                f"inputs must be of width {self.input_dim}, in float32; "
                f"got {tuple(inputs.shape)}, {inputs.dtype}."
            )
        (B, S, _), width = inputs.shape, 2 * self.hidden_dim
        states, last = torch.zeros(B, S, width), torch.zeros(B, width)
        read, real = inputs.contiguous().numpy(), lengths.numpy()
        # The longest first; empty sources are not read by the loop.
        order = np.argsort(-real, kind="stable")[: np.count_nonzero(real)]
        arguments = (read, real, order, self._weights, self._cell, states.numpy(), last.numpy())
        parallel_blocks(len(order), kernels.encode, *arguments)
        return states, last
