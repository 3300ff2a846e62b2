"""Decoders whose step is a compiled loop for each block of rows, the last layer in it if small."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.kernels import why_not
from regard.kernels.products import packed
from regard.kernels.threads import parallel_rows
from regard.kernels.transformer.decoder import best_tokens
from regard.layers import TokenEmbedding
from regard.runtime.products.linear import Linear
from regard.runtime.transformer.layers import MOST_BYTES as MOST_BYTES

# Is called with the logits of rows as soon as they are there.
Then = Callable[[int, int, Float32[np.ndarray, "R V"]], None]


def why_not_compiled(model: nn.Module, compiled: nn.Module) -> str | None:
    """Reason why a model cannot run in compiled loops, or None.

    Args:
        model: The model.
        compiled: The part whose weights the loops read; tables of embeddings are not counted.
    """
    tables = {id(each.weight) for each in model.modules() if isinstance(each, TokenEmbedding)}
    size = sum(p.nbytes for p in compiled.parameters() if id(p) not in tables)
    reasons = {
        "it is too large for the cache of a core": size > MOST_BYTES,
        "it is not in float32 on a CPU": any(
            p.device.type != "cpu" or p.dtype != torch.float32 for p in model.parameters()
        ),
    }
    return why_not() or next((reason for reason, holds in reasons.items() if holds), None)


@runtime_checkable
class CompiledState(Protocol):
    """State of a decoder whose step is compiled."""

    @property
    def pending(self) -> Tensor | None:
        """The last tokens of prompts, which take the place of the next step's."""

    @property
    def sentences(self) -> Int64[np.ndarray, " R"]:
        """The source of each row."""


CompiledStateT = TypeVar("CompiledStateT", bound=CompiledState)


class CompiledSteps(ABC, Generic[CompiledStateT]):
    """Step function of a search: log-probabilities, or the likeliest tokens.

    Args:
        output: The last layer.
        output_bias: Its bias.
    """

    def __init__(self, output: TokenEmbedding, output_bias: Tensor | None) -> None:
        self._output, self._output_bias = output, output_bias
        # A large table is gone through once for all rows.
        self._has_logits = output.weight.nbytes <= MOST_BYTES
        of_loop = output.weight.detach().numpy()[: len(output.weight) if self._has_logits else 0]
        added = np.zeros(len(of_loop), np.float32)
        if output_bias is not None and self._has_logits:
            added = output_bias.detach().numpy()
        self.table, self.table_bias = packed.pack(of_loop), packed.pad(added)

    @abstractmethod
    def _run(
        self,
        token: Int64[np.ndarray, " R"],
        state: CompiledStateT,
        answers: Float32[np.ndarray, "R C"],
        logits: Float32[np.ndarray, "R V"],
        then: Then | None,
    ) -> CompiledStateT:
        """Go one step on.

        Args:
            token: The last of each row.
            state: The state before it.
            answers: Where what the last layer is given goes.
            logits: Where logits go; without columns none are wanted.
            then: What to call with the logits of each block.
        """

    @cached_property
    def _logits_of(self) -> Linear:
        """Output layer where no loop computes logits."""
        return Linear(self._output.weight, self._output_bias)

    @torch.no_grad()
    def __call__(
        self, token: Int[Tensor, " R"], state: CompiledStateT
    ) -> tuple[Float[Tensor, "R V"], CompiledStateT]:
        """Log-probabilities of the next token, and the state after ``token``."""
        logits, after = self._advance(token, state, None)
        return torch.log_softmax(torch.from_numpy(logits), dim=-1), after

    @torch.no_grad()
    def best(
        self, token: Int[Tensor, " R"], state: CompiledStateT, count: int, hidden: Sequence[int]
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"], CompiledStateT]:
        """The ``count`` likeliest next tokens of each row; see ``RankingStep``."""
        never = np.array(hidden, np.int64)
        values = np.empty((len(token), count), np.float32)
        tokens = np.empty((len(token), count), np.int64)

        def choose(first: int, stop: int, logits: np.ndarray) -> None:
            best_tokens(first, stop, logits, never, values, tokens)

        _, after = self._advance(token, state, choose)
        return torch.from_numpy(values), torch.from_numpy(tokens), after

    def _advance(
        self, token: Tensor, state: CompiledStateT, then: Then | None
    ) -> tuple[Float32[np.ndarray, "R V"], CompiledStateT]:
        """Logits, and the state after ``token``."""
        token = token if state.pending is None else state.pending
        size, width = self._output.weight.shape
        rows = len(token)
        # A slice of a table is not laid out as a loop was compiled for.
        given = np.ascontiguousarray(token.numpy())
        answers = np.empty((rows, width), np.float32)
        logits = np.empty((rows, size if self._has_logits else 0), np.float32)
        after = self._run(given, state, answers, logits, then if self._has_logits else None)
        if not self._has_logits:
            found: Float32[np.ndarray, "R V"] = self._logits_of(torch.from_numpy(answers)).numpy()
            if (choose := then) is not None:
                parallel_rows(rows, 4 * size, lambda first, stop: choose(first, stop, found))
            logits = found
        return logits, after
