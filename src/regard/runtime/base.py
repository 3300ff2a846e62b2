"""Base of prepared models: all but the step function is the model's."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor

from regard.models.interfaces import LanguageModel, Seq2Seq, StateT


class PreparedSeq2Seq(Seq2Seq[StateT]):
    """An encoder-decoder whose decoder steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

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

    _steps: Callable[[Tensor, StateT], tuple[Tensor, StateT]]

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
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
