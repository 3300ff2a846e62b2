"""A beam that likes answers which have looked at the whole source."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import AttentionCall, observe
from regard.attention.observing import current_observer
from regard.bounds import bounded
from regard.decoding.step import StateT, Step
from regard.errors import SettingError, ShapeError
from regard.layers.inputs import whole

# Attention below this counts as this: a position that a window never reached is not infinitely bad.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class _Covered(Generic[StateT]):
    """The model's state, and how much every position of the source was looked at."""

    state: StateT
    looked: Float[Tensor, "R S"]  # the weights of all steps so far; no columns before the first
    lengths: Int[Tensor, " R"]  # real positions of each source

    @property
    def num_rows(self) -> int:
        """Rows of the batch."""
        return len(self.lengths)

    def select(self, rows: Int[Tensor, " K"]) -> "_Covered[StateT]":
        """The state of these rows, in this order."""
        return _Covered(self.state.select(rows), self.looked[rows], self.lengths[rows])


class CoveragePenalty(Generic[StateT]):
    """A model's step that sums its attention, and the penalty for source tokens left out.

    ``weight · Σ_i log(min(Σ_j p_ij, 1))`` over the positions i of the source, where p_ij is the
    attention of the j-th prediction (that of the end, too), over heads and layers averaged:
    equation 14 of Wu et al. (2016), https://arxiv.org/abs/1609.08144.

    Drive a beam with ``step`` and ``start(state, lengths)``, and give it ``bonus``.

    Args:
        step: The model's step.
        weight: How much it counts, β; 0.2 in the paper.

    Raises:
        SettingError: The weight is negative; while searching, if the model has no such attention.

    Example:
        >>> from regard.decoding import beam
        >>> from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig
        >>> sizes = RnnSeq2SeqConfig(embed_dim=5, hidden_dim=6, attention_dim=7)
        >>> model = RnnSeq2Seq(sizes, source_vocab=11, target_vocab=13).eval()
        >>> cover, lengths = CoveragePenalty(model.step), torch.tensor([3])
        >>> state = cover.start(model.start(torch.tensor([[4, 5, 6]]), lengths), lengths)
        >>> found = beam(cover.step, state, bonus=cover.bonus, batch_size=1, bos_id=2, eos_id=3,
        ...     max_lengths=5)
    """

    def __init__(self, step: Step[StateT], *, weight: int | float = 0.2) -> None:
        self._step, self._weight = step, bounded("weight", weight)

    def start(self, state: StateT, lengths: Int[Tensor, " B"]) -> _Covered[StateT]:
        """The state to begin with; ``lengths`` are those of the sources.

        Raises:
            ShapeError: There is not a length for each row of the state.
        """
        lengths = whole("lengths", lengths)
        rows = getattr(state, "num_rows", None)
        if lengths.dim() != 1 or rows not in (None, len(lengths)):
            raise ShapeError(
                f"lengths must be one for each row of the state, {rows}; "
                f"got {tuple(lengths.shape)}."
            )
        return _Covered(state, torch.zeros(len(lengths), 0, device=lengths.device), lengths)

    def step(
        self, token: Int[Tensor, " R"], covered: _Covered[StateT]
    ) -> tuple[Float[Tensor, "R V"], _Covered[StateT]]:
        """The model's step."""
        with _source_calls() as calls:
            log_probs, state = self._step(token, covered.state)
        if not calls:
            raise SettingError(
                "model must attend to its source for a coverage penalty; this one does not."
            )
        looked = torch.stack([_looked(call, len(token)) for call in calls]).mean(dim=0)
        if not covered.looked.shape[1]:
            _check_within(covered.lengths, looked.shape[1])
        total = covered.looked if covered.looked.shape[1] else torch.zeros_like(looked)
        return log_probs, _Covered(state, total + looked, covered.lengths)

    def bonus(self, covered: _Covered[StateT]) -> Float[Tensor, " R"]:
        """Coverage term of the score of an answer that ends here; at most zero."""
        positions = torch.arange(covered.looked.shape[1], device=covered.looked.device)
        lost = covered.looked.clamp(_LEAST, 1).log()
        is_real = positions < covered.lengths[:, None]
        return self._weight * lost.where(is_real, 0.0).sum(dim=1)


@contextmanager
def _source_calls() -> Iterator[list[AttentionCall]]:
    """Record calls of attention to a source inside the block; outer observers see them too."""
    outer, calls = current_observer(), list[AttentionCall]()

    def note(call: AttentionCall) -> None:
        if call.kind == "cross":
            calls.append(call)
        if outer is not None:
            outer(call)

    with observe(note):
        yield calls


def _check_within(lengths: Int[Tensor, " R"], most: int) -> None:
    """Raise ShapeError if a source is longer than its attention."""
    lowest, highest = map(int, lengths.aminmax())
    if not 0 <= lowest <= highest <= most:
        raise ShapeError(
            f"lengths must be from 0 to {most}, the longest source; got {lowest} to {highest}."
        )


def _looked(call: AttentionCall, rows: int) -> Float[Tensor, "R S"]:
    """The weights of the one query of each row, over its heads averaged."""
    weights = call.weights()
    return weights.float().reshape(rows, -1, weights.shape[-1]).mean(dim=1)
