"""A Transformer that is ready to write many translations."""

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor

from regard.attention.observing import current_editor, current_observer
from regard.models.transformer import Transformer
from regard.runtime.base import PreparedSeq2Seq
from regard.runtime.memory import hand_back
from regard.runtime.state import PreparedState, begin
from regard.runtime.transformer.decoder import DecoderStack
from regard.runtime.transformer.encoder import PreparedEncoder
from regard.runtime.transformer.layers import why_not_prepared


class PreparedTransformer(PreparedSeq2Seq[PreparedState]):
    """A Transformer whose decoder steps cost little; it gives the same answers.

    Its weights may be copies: prepare it again when the model has learned more.

    Args:
        model: In evaluation mode.

    Example:
        >>> from regard.models import TransformerConfig
        >>> from regard.runtime import prepared
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 3])
        >>> torch.equal(prepared(model)(ids, lengths, ids)[0], model(ids, lengths, ids)[0])
        True
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16, positions="t5")
        >>> PreparedTransformer.refuse(Transformer(config, source_vocab=11, target_vocab=11))
        'its positions are relative'
    """

    model: Transformer
    _steps: DecoderStack

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        self._steps = DecoderStack(
            list(model.decoder),
            embedding=model.target_embedding,
            positions=model.target_positions or model.positions,
            embedding_norm=model.target_norm,
            norm=model.decoder_norm,
            output=model.output,
            output_bias=model.output_bias,
            window=model.config.window,
            alibi_heads=model.config.num_heads if model.config.positions == "alibi" else None,
        )
        self._encoder = PreparedEncoder(model)
        # Weights were laid out anew, and what they were laid out from is free.
        hand_back()

    @staticmethod
    def refuse(model: Transformer) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        if model.config.copy:
            return "it copies words"
        if model.config.positions == "t5":
            return "its positions are relative"
        return why_not_prepared(list(model.decoder))

    @torch.no_grad()
    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]) -> PreparedState:
        """The state before the first token: the source read, and projected for every layer."""
        layers = self._steps.layers
        if current_observer() is current_editor() is None:
            memory = self._encoder(source, source_lengths)
        else:
            memory = self._read(source, source_lengths)
        return begin(
            len(source),
            layers,
            self._steps.width,
            memory=memory,
            lengths=source_lengths,
        )

    @torch.no_grad()
    def _read(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources as the model makes them, whoever watches or edits it."""
        read = self.model.start(source, source_lengths).memory
        width, (B, _, M, _) = self._steps.width, read[0].key.shape
        memory = np.empty((len(read), B, M, width), np.float32)
        for kept, cache in zip(memory, read, strict=True):
            kept[..., : width // 2] = cache.key.transpose(1, 2).flatten(2).numpy()
            kept[..., width // 2 :] = cache.value.transpose(1, 2).flatten(2).numpy()
        return memory
