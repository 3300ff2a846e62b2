"""Recurrent decoders and encoders: a step, or a pass, is one compiled loop a block of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.errors import ShapeError
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


class LinearMap(NamedTuple):
    """A linear map; without entries it is none."""

    weight: Float[Tensor, "O I"] = torch.zeros(0, 0)
    bias: Float[Tensor, " O"] = torch.zeros(0)


def pack_weights(
    layers: Sequence[Layer],
    *,
    embedding: TokenEmbedding,
    readout: LinearMap,
    query_map: Float[Tensor, "A h"] | None = None,
    units: Float[Tensor, " A"] | None = None,
) -> kernels.RecurrentWeights:
    """Pack all weights but the output's; ``units`` weigh the hidden units of additive scores."""
    inputs, input_biases, hidden, hidden_biases = (
        [_numbers(weight) for weight in of] for of in zip(*layers, strict=True)
    )
    return kernels.RecurrentWeights(
        embedding=_numbers(embedding.weight),
        embedding_scale=np.float32(embedding.scale),
        first=packed.pack(inputs[0]),
        later=packed.stack_packed(inputs[1:], hidden[0].shape[1]),
        input_biases=packed.stack_padded(input_biases),
        hidden=packed.stack_packed(hidden),
        hidden_biases=packed.stack_padded(hidden_biases),
        query_map=packed.pack(_numbers(torch.zeros(0, 0) if query_map is None else query_map)),
        units=_numbers(torch.zeros(0) if units is None else units),
        readout=packed.pack(_numbers(readout.weight)),
        readout_bias=packed.pad(_numbers(readout.bias)),
    )


def _numbers(tensor: Tensor) -> Float32[np.ndarray, "..."]:
    numbers: np.ndarray = tensor.detach().contiguous().numpy()
    return numbers


@dataclass(frozen=True, eq=False)
class RecurrentMemory:
    """Memory of recurrent decoders; constant over the steps."""

    keys: Float32[np.ndarray, "B M A"]  # projected for the score
    values: Float32[np.ndarray, "B M E"]  # without width, nothing is attended to
    lengths: Int64[np.ndarray, " B"]

    @classmethod
    def none(cls) -> "RecurrentMemory":
        """No memory."""
        nothing = np.zeros((0, 0, 0), np.float32)
        return cls(nothing, nothing, np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class RecurrentState(PackedState):
    """Decoder state between two tokens."""

    carried: Float32[np.ndarray, "P W"]  # of all layers, and the answer if the next step reads it
    indices: Int64[np.ndarray, " R"]  # of each row in ``carried``
    sources: RecurrentMemory

    @classmethod
    def begin(
        cls,
        owner: nn.Module,
        carried: Float[Tensor, "R W"],
        sources: RecurrentMemory,
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

    def rows(self) -> Float[Tensor, "R W"]:
        """State of each row."""
        return torch.from_numpy(self.carried[self.indices])


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
        table = output.weight.detach().numpy()[: self._outputs if self._has_logits else 0]
        bias = np.zeros(len(table), np.float32)
        if output_bias is not None and self._has_logits:
            bias = output_bias.detach().numpy()
        self._weights = weights._replace(table=packed.pack(table), table_bias=packed.pad(bias))

    def _advance(
        self, token: Int64[np.ndarray, " R"], state: RecurrentState, ranking: RankedTokens | None
    ) -> tuple[Float[Tensor, "R V"] | None, RecurrentState]:
        rows, sources = len(token), state.sources
        after = np.empty((rows, state.carried.shape[1]), np.float32)
        answers = np.empty((rows, self._width), np.float32)
        logits = np.empty((rows, self._outputs if self._has_logits else 0), np.float32)
        memory = kernels.Memory(sources.keys, sources.values, sources.lengths, state.sentences)
        inputs = (token, state.carried, state.indices)
        weights = (self._weights, memory, self._options)
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
        ways = zip(layers_of(recurrence), layers_of(recurrence, "_reverse"), strict=True)
        # Of each kind, that of each layer: of both directions one on the other.
        inputs, input_biases, hidden, hidden_biases = (
            [[weight.detach().numpy() for weight in pair] for pair in of]
            for of in zip(*(zip(*both, strict=True) for both in ways), strict=True)
        )
        first, *later = (packed.stack_packed(pair) for pair in inputs)
        none = np.zeros((0, *first.shape[:2], 2 * encoder.hidden_dim, packed.OUTPUTS), np.float32)
        recurrent_weights = np.stack([packed.stack_packed(pair) for pair in hidden])
        of_inputs, of_hidden = (
            np.stack([packed.stack_padded(pair) for pair in of])
            for of in (input_biases, hidden_biases)
        )
        self._weights = kernels.EncoderWeights(
            first, np.stack(later) if later else none, of_inputs, recurrent_weights, of_hidden
        )

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
