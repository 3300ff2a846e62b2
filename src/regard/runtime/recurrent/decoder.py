"""A recurrent decoder as a search drives it: a step is one compiled loop for each block of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.attention import Mask, lengths
from regard.kernels import recurrent as kernels
from regard.kernels.products import packed as packing
from regard.kernels.threads import parallel_blocks
from regard.layers import TokenEmbedding
from regard.runtime.steps import CompiledSteps, Then


class Layer(NamedTuple):
    """Weights of one recurrent layer for its input and its state, gates concatenated."""

    input: Float[Tensor, "G I"]
    input_bias: Float[Tensor, " G"]
    hidden: Float[Tensor, "G h"]
    hidden_bias: Float[Tensor, " G"]


def layers_of(recurrence: nn.RNNBase, suffix: str = "") -> list[Layer]:
    """The layers of one direction, with gates in the order of ``layers.RecurrentCell``."""

    def gates(name: str) -> Tensor:
        found = recurrence.get_parameter(f"{name}{suffix}")
        if recurrence.mode != "LSTM":
            return found
        keep_in, forget, new, show = found.chunk(4)
        return torch.cat([keep_in, forget, show, new])

    names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    return [
        Layer(*(gates(f"{name}_l{layer}") for name in names))
        for layer in range(recurrence.num_layers)
    ]


class Linear(NamedTuple):
    """A linear map; without entries it is none."""

    weight: Float[Tensor, "O I"] = torch.zeros(0, 0)
    bias: Float[Tensor, " O"] = torch.zeros(0)


def packed(
    layers: Sequence[Layer],
    *,
    embedding: TokenEmbedding,
    readout: Linear,
    ask: Float[Tensor, "A h"] | None = None,
    units: Float[Tensor, " A"] | None = None,
) -> kernels.Weights:
    """Weights as a step goes through them, but for the output's.

    Args:
        layers: From the first to the last.
        embedding: Of tokens.
        readout: What makes an answer of the last state and what stands beside it.
        ask: What queries are multiplied with, if they are.
        units: Of an additive score.
    """
    inputs, input_biases, hidden, hidden_biases = (
        [_numbers(each) for each in of] for of in zip(*layers, strict=True)
    )
    return kernels.Weights(
        embedding=_numbers(embedding.weight),
        embedding_scale=np.float32(embedding.scale),
        first=packing.pack(inputs[0]),
        later=packing.pack_each(inputs[1:], hidden[0].shape[1]),
        input_biases=packing.pad_each(input_biases),
        hidden=packing.pack_each(hidden),
        hidden_biases=packing.pad_each(hidden_biases),
        ask=packing.pack(_numbers(torch.zeros(0, 0) if ask is None else ask)),
        units=_numbers(torch.zeros(0) if units is None else units),
        readout=packing.pack(_numbers(readout.weight)),
        readout_bias=packing.pad(_numbers(readout.bias)),
    )


def _numbers(tensor: Tensor) -> Float32[np.ndarray, "..."]:
    numbers: np.ndarray = tensor.detach().contiguous().numpy()
    return numbers


@dataclass(frozen=True, eq=False)
class Sources:
    """Memory of recurrent decoders; constant over the steps.

    Attributes:
        keys: Of the sources, projected for the score.
        values: What is mixed; nothing is looked at where they have no width.
        lengths: How many places of each source are real.
    """

    keys: Float32[np.ndarray, "B M A"]
    values: Float32[np.ndarray, "B M E"]
    lengths: Int64[np.ndarray, " B"]

    @classmethod
    def none(cls) -> "Sources":
        """Nothing to look at."""
        nothing = np.zeros((0, 0, 0), np.float32)
        return cls(nothing, nothing, np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class View:
    """Memory of each row.

    Attributes:
        sources: All that were read.
        sentences: The source of each row.
    """

    sources: Sources
    sentences: Int64[np.ndarray, " R"]

    @cached_property
    def keys(self) -> Float[Tensor, "R M A"]:
        """The keys of each row."""
        return torch.from_numpy(self.sources.keys[self.sentences])

    @cached_property
    def mask(self) -> Mask:
        """Mask of the real positions."""
        return lengths(torch.from_numpy(self.sources.lengths[self.sentences]))


@dataclass(frozen=True, eq=False)
class RecurrentState:
    """Decoder state between two tokens.

    Attributes:
        carried: The states of all layers, and the last answer where the next step reads it.
        places: Which of them is each row's.
        view: What they look at.
        pending: The last tokens of prompts, not read yet; they take the place of the next step's.
    """

    carried: Float32[np.ndarray, "P W"]
    places: Int64[np.ndarray, " R"]
    view: View
    pending: Int[Tensor, " R"] | None = None

    @classmethod
    def begin(
        cls,
        carried: Float[Tensor, "R W"],
        sources: Sources,
        pending: Int[Tensor, " R"] | None = None,
    ) -> "RecurrentState":
        """The state of rows that each have a source of their own, if there are any."""
        rows = np.arange(len(carried))
        return cls(carried.contiguous().numpy(), rows, View(sources, rows), pending)

    def select(self, rows: Int[Tensor, " K"]) -> "RecurrentState":
        """The state of these rows, in this order: what they carry stays where it is."""
        kept = rows.numpy()
        return replace(
            self,
            places=self.places[kept],
            view=View(self.view.sources, self.view.sentences[kept]),
            pending=None if self.pending is None else self.pending[rows],
        )

    @property
    def sentences(self) -> Int64[np.ndarray, " R"]:
        """The source of each row."""
        return self.view.sentences

    def rows(self) -> Float[Tensor, "R W"]:
        """State of each row."""
        return torch.from_numpy(self.carried[self.places])


# Shows an observer what a step looked at, given the states before it and after it.
Show = Callable[[RecurrentState, RecurrentState], None]


class RecurrentDecoder(CompiledSteps[RecurrentState]):
    """Recurrent layers, their embedding and their output, ready for many steps.

    Args:
        weights: Of all of them.
        options: What kind of decoder it is.
        output: The last layer.
        output_bias: Its bias.
        show: Called after each step.
    """

    def __init__(
        self,
        weights: kernels.Weights,
        options: kernels.Options,
        *,
        output: TokenEmbedding,
        output_bias: Tensor | None,
        show: Show | None = None,
    ) -> None:
        super().__init__(output, output_bias)
        self._options, self._show = options, show
        self._weights = weights._replace(table=self.table, table_bias=self.table_bias)

    def _run(
        self,
        token: Int64[np.ndarray, " R"],
        state: RecurrentState,
        answers: Float32[np.ndarray, "R C"],
        logits: Float32[np.ndarray, "R V"],
        then: Then | None,
    ) -> RecurrentState:
        rows = len(token)
        after = np.empty((rows, state.carried.shape[1]), np.float32)
        sources = state.view.sources
        memory = kernels.Memory(sources.keys, sources.values, sources.lengths, state.sentences)

        def go(first: int, stop: int) -> None:
            kernels.step(
                first,
                stop,
                token,
                state.carried,
                state.places,
                self._weights,
                memory,
                self._options,
                after,
                answers,
                logits,
            )
            if then is not None:
                then(first, stop, logits)

        parallel_blocks(rows, go)
        made = replace(state, carried=after, places=np.arange(rows), pending=None)
        if self._show is not None:
            self._show(state, made)
        return made
