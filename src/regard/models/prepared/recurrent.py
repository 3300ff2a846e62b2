"""A recurrent decoder as a search drives it: a step is one compiled loop for each block of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.attention import Mask, lengths
from regard.attention.engine import blas
from regard.attention.engine.kernels import why_not
from regard.layers import TokenEmbedding
from regard.models.prepared.sharing import by_rows, in_blocks

if TYPE_CHECKING:
    from regard.models.prepared import recurrent_kernels

# Weights up to so many bytes stay in the cache of a core while it goes through them for its rows.
_MOST_BYTES = 2**25


def why_no_recurrence(model: nn.Module) -> str | None:
    """What stands against preparing a recurrent model, whatever it looks at, or None."""
    tables = {id(each.weight) for each in model.modules() if isinstance(each, TokenEmbedding)}
    size = sum(p.nbytes for p in model.parameters() if id(p) not in tables)
    reasons = {
        "torch brings another BLAS than Intel's": blas.address_of_products() is None,
        "it is too large for the cache of a core": size > _MOST_BYTES,
        "it is not in float32 on a CPU": any(
            p.device.type != "cpu" or p.dtype != torch.float32 for p in model.parameters()
        ),
    }
    return why_not() or next((reason for reason, holds in reasons.items() if holds), None)


class Layer(NamedTuple):
    """What one recurrent layer multiplies its input and its own state with, gates side by side."""

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
) -> "recurrent_kernels.Weights":
    """Weights as a step goes through them, but for the output's.

    Args:
        layers: From the first to the last.
        embedding: Of tokens.
        readout: What makes an answer of the last state and what stands beside it.
        ask: What queries are multiplied with, if they are.
        units: Of an additive score.
    """
    from regard.models.prepared import recurrent_kernels

    inputs, input_biases, hidden, hidden_biases = zip(*layers, strict=True)
    later = torch.stack(inputs[1:]) if len(layers) > 1 else hidden[0].new_zeros(0, *hidden[0].shape)
    numbers = [
        embedding.weight,
        inputs[0],
        later,
        torch.stack(input_biases),
        torch.stack(hidden),
        torch.stack(hidden_biases),
        torch.zeros(0, 0) if ask is None else ask,
        torch.zeros(0) if units is None else units,
        *readout,
    ]
    table, *others = (each.detach().contiguous().numpy() for each in numbers)
    return recurrent_kernels.Weights(table, np.float32(embedding.scale), *others)


@dataclass(frozen=True, eq=False)
class Sources:
    """What recurrent decoders look at, as it was read; it does not change from step to step.

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
    """What each row looks at.

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
        """Which of them are real."""
        return lengths(torch.from_numpy(self.sources.lengths[self.sentences]))


@dataclass(frozen=True, eq=False)
class RecurrentState:
    """What decoding carries from one token to the next.

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

    def rows(self) -> Float[Tensor, "R W"]:
        """What each row carries."""
        return torch.from_numpy(self.carried[self.places])


# Shows an observer what a step looked at, given the states before it and after it.
Show = Callable[[RecurrentState, RecurrentState], None]


class PreparedRecurrence:
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
        weights: "recurrent_kernels.Weights",
        options: "recurrent_kernels.Options",
        *,
        output: TokenEmbedding,
        output_bias: Tensor | None,
        show: Show | None = None,
    ) -> None:
        # Only here: what cannot be compiled cannot be imported.
        from regard.models.prepared import kernels, recurrent_kernels

        self._step, self._best_tokens = recurrent_kernels.step, kernels.best_tokens
        self._memory = recurrent_kernels.Memory
        self._options, self._output, self._output_bias = options, output, output_bias
        self._show = show
        # A large table is gone through once for all rows.
        self._has_logits = output.weight.nbytes <= _MOST_BYTES
        if self._has_logits:
            bias = weights.table_bias if output_bias is None else output_bias.detach().numpy()
            weights = weights._replace(table=output.weight.detach().numpy(), table_bias=bias)
        self._weights = weights

    @torch.no_grad()
    def __call__(
        self, token: Int[Tensor, " R"], state: RecurrentState
    ) -> tuple[Float[Tensor, "R V"], RecurrentState]:
        """Log-probabilities of the next token, and the state after ``token``."""
        logits, after = self._advance(token, state)
        return torch.log_softmax(torch.from_numpy(logits), dim=-1), after

    @torch.no_grad()
    def best(
        self, token: Int[Tensor, " R"], state: RecurrentState, count: int, hidden: Sequence[int]
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"], RecurrentState]:
        """The ``count`` likeliest next tokens of each row; see ``RankingStep``."""
        never = np.array(hidden, np.int64)
        values = np.empty((len(token), count), np.float32)
        tokens = np.empty((len(token), count), np.int64)

        def choose(first: int, stop: int, logits: np.ndarray) -> None:
            self._best_tokens(first, stop, logits, never, values, tokens)

        _, after = self._advance(token, state, choose)
        return torch.from_numpy(values), torch.from_numpy(tokens), after

    def _advance(
        self,
        token: Tensor,
        state: RecurrentState,
        then: Callable[[int, int, np.ndarray], None] | None = None,
    ) -> tuple[Float32[np.ndarray, "R V"], RecurrentState]:
        """The logits, and the state after ``token``; ``then`` is called with the logits of rows."""
        token = token if state.pending is None else state.pending
        rows, table = len(token), self._output.weight
        # A slice of a table is not laid out as a loop was compiled for.
        last = np.ascontiguousarray(token.numpy())
        after = np.empty((rows, state.carried.shape[1]), np.float32)
        answers = np.empty((rows, table.shape[1]), np.float32)
        logits = np.empty((rows, len(table) if self._has_logits else 0), np.float32)
        sources, sentences = state.view.sources, state.view.sentences
        memory = self._memory(sources.keys, sources.values, sources.lengths, sentences)

        def go(first: int, stop: int) -> None:
            self._step(
                first,
                stop,
                last,
                state.carried,
                state.places,
                self._weights,
                memory,
                self._options,
                after,
                answers,
                logits,
            )
            if then is not None and self._has_logits:
                then(first, stop, logits)

        in_blocks(rows, go)
        if not self._has_logits:
            found = self._output.logits(torch.from_numpy(answers), self._output_bias)
            logits = found.numpy()
            if then is not None:
                by_rows(rows, 4 * len(table), lambda first, stop: then(first, stop, logits))
        made = replace(state, carried=after, places=np.arange(rows), pending=None)
        if self._show is not None:
            self._show(state, made)
        return logits, made
