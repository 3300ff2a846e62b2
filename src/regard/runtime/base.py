"""Base of prepared models: all but the step function is the model's."""

from collections.abc import Callable
from copy import copy
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.models.interfaces import LanguageModel, Seq2Seq, StateT
from regard.models.shortlist import Shortlist
from regard.runtime.products.listed import Listed


@runtime_checkable
class ListingSteps(Protocol[StateT]):
    """Steps whose last layer can be that of a few tokens."""

    def listed(self, mask: Bool[np.ndarray, "B V"]) -> Listed:
        """The last layer over what answers to sources may be made of."""
        ...

    def __call__(self, token: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """See ``Seq2Seq.step``."""
        ...


class PreparedSeq2Seq(Seq2Seq[StateT]):
    """An encoder-decoder whose decoder steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.
        shortlist: What answers may be made of, by their sources; None is all tokens.

    Example:
        >>> import torch
        >>> from regard.models import Transformer, TransformerConfig
        >>> from regard.runtime import prepared
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=7).eval()
        >>> ready, states = prepared(model), torch.ones(2, 4, 8)
        >>> ready.max_length is None, torch.equal(ready.project(states), model.project(states))
        (True, True)
    """

    _steps: ListingSteps[StateT]

    def __init__(self, model: Seq2Seq, *, shortlist: Shortlist | None = None) -> None:
        super().__init__()
        self.model, self.shortlist = model, shortlist
        self.max_length, self.begins_source = model.max_length, model.begins_source

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, ""] | None]:
        """See the model."""
        return self.model.forward(source, source_lengths, target, target_lengths)

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """See the model."""
        return self.model.project(states)

    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """See the model."""
        return self._steps(token, state)

    def listing(self, shortlist: Shortlist) -> "PreparedSeq2Seq[StateT]":
        """Copy with a restricted vocabulary; the weights are shared."""
        made = copy(self)
        made.shortlist = shortlist
        return made

    def _listed(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> Listed | None:
        """Restricted vocabulary of these sources; None is all tokens."""
        if self.shortlist is None:
            return None
        return self._steps.listed(self.shortlist.of(source, source_lengths))

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """Step function of a search."""
        return self._steps


class PreparedLanguageModel(LanguageModel[StateT]):
    """A language model whose steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.
    """

    _steps: Callable[[Tensor, StateT], tuple[Tensor, StateT]]

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        self.max_length, self.output_dim = model.max_length, model.output_dim

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B N C"]:
        """See the model."""
        return self.model.forward(ids, lengths)

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """See the model."""
        return self.model.project(states)

    def step(self, token: Int[Tensor, " B"], state: StateT) -> tuple[Float[Tensor, "B V"], StateT]:
        """See the model."""
        return self._steps(token, state)

    @property
    def steps(self) -> Callable[[Tensor, StateT], tuple[Tensor, StateT]]:
        """Step function of a search."""
        return self._steps
