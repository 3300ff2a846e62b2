"""Forwarding of a model whose steps the runtime computes."""

from collections.abc import Callable
from typing import Any, Generic

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.models.interfaces import LanguageModel, Seq2Seq, StateT


class Forwarding(nn.Module, Generic[StateT]):
    """Forwards all calls but those of steps to a model.

    Args:
        model: In evaluation mode.
    """

    _steps: Callable[[Tensor, StateT], tuple[Tensor, StateT]]

    def __init__(self, model: Seq2Seq | LanguageModel) -> None:
        super().__init__()
        self.model, self.max_length = model, model.max_length

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """See the model."""
        return self.model.forward(*inputs, **options)

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


class PreparedSeq2Seq(Forwarding[StateT], Seq2Seq[StateT]):
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

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        self.begins_source = model.begins_source


class PreparedLanguageModel(Forwarding[StateT], LanguageModel[StateT]):
    """A language model whose steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.output_dim = model.output_dim
