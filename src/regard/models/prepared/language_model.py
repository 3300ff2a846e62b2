"""A language model that is ready to write on."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention import KeyValueCache
from regard.models.decoder import Decoder
from regard.models.prepared.base import PreparedLanguageModel
from regard.models.prepared.decoder import PreparedStack
from regard.models.prepared.layers import why_not_prepared
from regard.models.prepared.state import PreparedState, begin


class PreparedDecoder(PreparedLanguageModel[PreparedState]):
    """A language model whose steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

    Example:
        >>> from regard.models import DecoderConfig
        >>> from regard.models.prepared import prepared
        >>> config = DecoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> model, ids = Decoder(config, vocab_size=11).eval(), torch.tensor([[5, 6, 7], [8, 9, 0]])
        >>> torch.equal(prepared(model)(ids), model(ids))
        True
        >>> PreparedDecoder.refuse(model.double()) is None  # it must be in float32
        False
    """

    model: Decoder
    _steps: PreparedStack

    def __init__(self, model: Decoder) -> None:
        super().__init__(model)
        self._steps = PreparedStack(
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
        read = self.model.start(prompt, prompt_lengths)
        rows, layers, width = len(prompt), self._steps.layers, self._steps.width
        seen = read.past[0].length
        nothing = np.zeros((0, 0, 0, width), np.float32)
        state = begin(rows, layers, width, memory=nothing, length=seen)
        state = replace(state, pending=read.pending)
        if read.padding is not None:
            state = replace(state, starts=read.padding.numpy().astype(np.int32))
        if seen:
            for kept, cache in zip(state.store.kept, read.past, strict=True):
                assert isinstance(cache, KeyValueCache)
                for column, part in ((0, cache.key), (width // 2, cache.value)):
                    kept[:, :seen, column : column + width // 2] = (
                        part.transpose(1, 2).flatten(2).numpy()
                    )
        return state
