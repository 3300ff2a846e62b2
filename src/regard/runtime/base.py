"""Models whose steps are compiled loops; all other calls are forwarded to the model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn

from regard.attention.observing import current_editor, current_observer
from regard.checks import check_at_least, check_at_most
from regard.errors import SettingError, ShapeError
from regard.kernels import why_not
from regard.kernels.threads import parallel_rows
from regard.kernels.transformer.layers import best_tokens
from regard.layers import TokenEmbedding
from regard.layers.inputs import check_state, is_within, step_tokens, unknown_ids
from regard.models.interfaces import LanguageModel, Seq2Seq, StateT
from regard.runtime.products import Int8Embedding, Linear


def why_not_packed(parameters: Iterable[Tensor], reasons: Mapping[str, bool]) -> str | None:
    """First reason why a model cannot run in compiled loops, or None."""
    is_float32 = all(p.device.type == "cpu" and p.dtype == torch.float32 for p in parameters)
    reasons = {**reasons, "it is not in float32 on a CPU": not is_float32}
    return why_not() or next((reason for reason, holds in reasons.items() if holds), None)


@dataclass(frozen=True, eq=False)
class PackedState(ABC):
    """State of a decoder whose step is compiled, between two tokens."""

    sentences: Int64[np.ndarray, " R"]  # the source of each row
    owner: nn.Module  # the model whose state it is
    # The last tokens of prompts, which take the place of the next step's.
    pending: Int[Tensor, " R"] | None = field(default=None, kw_only=True)

    @property
    def num_rows(self) -> int:
        """Rows of the batch."""
        return len(self.sentences)

    @abstractmethod
    def divided(self, rows: Int[Tensor, " K"]) -> Self:
        """The state of these rows, whose steps write nothing that those of others read."""


PackedStateT = TypeVar("PackedStateT", bound=PackedState)


class RankedTokens(NamedTuple):
    """The likeliest tokens of each row, to be written; hidden ones are none of them."""

    hidden: Int64[np.ndarray, " X"]
    values: Float32[np.ndarray, "R J"]
    tokens: Int64[np.ndarray, "R J"]


class DecoderSteps(ABC, Generic[PackedStateT]):
    """Step function of a search: log-probabilities, or the likeliest tokens.

    All that a compiled loop takes for an index is checked here, before it is entered.

    Attributes:
        vocab_size: Number of token ids, V.
    """

    def __init__(
        self,
        owner: nn.Module,
        state_type: type[PackedStateT],
        vocab_size: int,
        output: TokenEmbedding | Int8Embedding,
        output_bias: Tensor | None,
    ) -> None:
        self._owner, self._state_type, self.vocab_size = owner, state_type, vocab_size
        self._output, self._output_bias = output, output_bias

    @abstractmethod
    def _advance(
        self, token: Int64[np.ndarray, " R"], state: PackedStateT, ranking: RankedTokens | None
    ) -> tuple[Float[Tensor, "R V"] | None, PackedStateT]:
        """Logits, None where the loop has written the ranking, and the state after ``token``."""

    @torch.no_grad()
    def __call__(
        self, token: Int[Tensor, " R"], state: PackedStateT
    ) -> tuple[Float[Tensor, "R V"], PackedStateT]:
        """Log-probabilities of the next token, and the state after ``token``."""
        logits, after = self._advance(self._read(token, state), state, None)
        assert logits is not None
        return torch.log_softmax(logits, dim=-1), after

    def best(
        self, token: Int[Tensor, " R"], state: PackedStateT, count: int, hidden: Sequence[int]
    ) -> tuple[Float[Tensor, "R J"], Int[Tensor, "R J"], PackedStateT]:
        """The ``count`` likeliest next tokens of each row, up to all; see ``RankingStep``."""
        ids = self._read(token, state)
        if not 1 <= count <= self.vocab_size:
            check_at_least("count", count, 1)
            check_at_most("count", count, self.vocab_size)
        shape = (len(ids), count)
        values, tokens = np.empty(shape, np.float32), np.empty(shape, np.int64)
        ranking = RankedTokens(self._hidden(hidden), values, tokens)
        logits, after = self._advance(ids, state, ranking)
        if logits is not None:
            outputs = logits.shape[1]
            parallel_rows(len(ids), 4 * outputs, best_tokens, logits.numpy(), outputs, *ranking)
        return torch.from_numpy(values), torch.from_numpy(tokens), after

    def divide(
        self, state: PackedStateT, parts: Sequence[Int[Tensor, " K"]], width: int
    ) -> list[PackedStateT] | None:
        """The state of each part of the sentences, for threads; see ``DivisibleStep``."""
        if (count := sum(map(len, parts))) != state.num_rows:
            raise ShapeError(f"parts must hold all {state.num_rows} rows; got {count}.")
        rows = width * min(map(len, parts))
        if current_observer() is not None or not self._is_worth_dividing(rows):
            return None
        return [state.divided(part) for part in parts]

    @abstractmethod
    def _is_worth_dividing(self, rows: int) -> bool:
        """Whether threads with at least so many rows each are fastest by themselves."""

    def _read(self, token: Int[Tensor, " R"], state: PackedStateT) -> Int64[np.ndarray, " R"]:
        """Ids of the tokens that a step reads, if token and state are the model's."""
        check_unedited()
        check_state(state, self._state_type)
        if state.owner is not self._owner:
            raise SettingError(
                "state must be one of this model; got one of another. Begin with start()."
            )
        token = step_tokens(token, state.num_rows)
        if not token.is_cpu:
            raise ShapeError(f"token must be on the CPU, as the model is; got {token.device}.")
        ids: Int64[np.ndarray, " R"] = token.numpy()
        if not is_within(ids, self.vocab_size):
            raise unknown_ids("token ids", token, self.vocab_size)
        # All ids are checked; those read are made contiguous: they may be a table's column.
        return np.ascontiguousarray(ids if state.pending is None else state.pending.numpy())

    def _hidden(self, hidden: Sequence[int]) -> Int64[np.ndarray, " X"]:
        """Hidden tokens as loops take them."""
        if hidden and not 0 <= min(hidden) <= max(hidden) < self.vocab_size:
            raise unknown_ids("hidden", torch.tensor(hidden), self.vocab_size)
        return np.array(hidden, np.int64)

    @cached_property
    def _logits_of(self) -> Callable[[Tensor], Tensor]:
        """The output layer, where no loop computes logits."""
        output, bias = self._output, self._output_bias
        if isinstance(output, TokenEmbedding):
            return Linear.of(output.weight, bias)
        return torch.no_grad()(lambda states: output.logits(states, bias))


def check_unedited() -> None:
    """Raise SettingError where attention is edited: compiled steps ask no editor."""
    if current_editor() is not None:
        raise SettingError(
            "model must not be prepared where its attention is edited; got one that is. "
            "Edit the model itself, or call prepared() inside the block."
        )


class _Forwarding(nn.Module, Generic[StateT]):
    """Forwards all calls but those of steps to a model."""

    _steps: Callable[[Tensor, StateT], tuple[Tensor, StateT]]

    def __init__(self, model: Seq2Seq | LanguageModel) -> None:
        super().__init__()
        self.model, self.max_length = model, model.max_length

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle the model; packed weights and compiled loops are made anew of it."""
        return type(self), (self.model,), {"training": self.training}

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.model.forward(*inputs, **options)

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        return self.model.project(states)

    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        return self._steps(token, state)

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """Step function of a search."""
        return self._steps


class PreparedSeq2Seq(_Forwarding[StateT], Seq2Seq[StateT]):
    """An encoder-decoder whose decoder steps cost little; it gives the same answers."""

    # Its weights may be copies: prepare it again when the model has learned more.

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        self.begins_source = model.begins_source


class PreparedLanguageModel(_Forwarding[StateT], LanguageModel[StateT]):
    """A language model whose steps cost little; see ``PreparedSeq2Seq``."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.output_dim = model.output_dim
