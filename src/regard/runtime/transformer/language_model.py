"""A language model that is ready to write on."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.models.decoder import Decoder
from regard.runtime.base import PreparedLanguageModel
from regard.runtime.state import PreparedState, begin
from regard.runtime.transformer.decoder import DecoderStack
from regard.runtime.transformer.layers import why_not_prepared


class PreparedDecoder(PreparedLanguageModel[PreparedState]):
    """A language model whose steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

    Example:
        >>> from regard.models import DecoderConfig
        >>> from regard.runtime import prepared
        >>> config = DecoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> model, ids = Decoder(config, vocab_size=11).eval(), torch.tensor([[5, 6, 7], [8, 9, 0]])
        >>> torch.equal(prepared(model)(ids), model(ids))
        True
        >>> PreparedDecoder.refuse(model.double()) is None  # it must be in float32
        False
    """

    model: Decoder
    _steps: DecoderStack

    def __init__(self, model: Decoder) -> None:
        super().__init__(model)
        self._steps = DecoderStack(
            list(model.layers),
            embedding=model.embedding,
            positions=model.positions,
            embedding_norm=None,
            norm=model.norm,
            output=model.output,
            output_bias=None,
            window=model.config.window,
            alibi_heads=model.config.num_heads if model.config.positions == "alibi" else None,
        )

    @staticmethod
    def refuse(model: Decoder) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        return why_not_prepared(list(model.layers))

    @torch.no_grad()
    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> PreparedState:
        """The state before a continuation of each prompt, whose last token comes first."""
        layers, width = self._steps.layers, self._steps.width
        nothing = np.zeros((0, 0, 0, width), np.float32)
        seen = max(0, prompt.shape[1] - 1)
        state = begin(len(prompt), layers, width, memory=nothing, length=seen)
        if not prompt.shape[1]:
            return state
        state = replace(
            state,
            pending=prompt.gather(1, prompt_lengths[:, None] - 1)[:, 0],
            starts=(prompt.shape[1] - prompt_lengths).numpy().astype(np.int32),
        )
        # Each by itself: what one gets does not depend on the others.
        for row, length in enumerate(prompt_lengths.tolist()):
            read = self.model.start(prompt[row : row + 1, :length], prompt_lengths[row : row + 1])
            for kept, cache in zip(state.store.kept, read.past, strict=True):
                for column, part in ((0, cache.key), (width // 2, cache.value)):
                    kept[row, seen + 1 - length : seen, column : column + width // 2] = (
                        part[0].transpose(0, 1).flatten(1).numpy()
                    )
        return state
