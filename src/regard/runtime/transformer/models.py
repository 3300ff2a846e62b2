"""Transformers and decoder-only language models, packed for many answers."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor

from regard.attention import KeyValueCache
from regard.attention.observing import current_editor, current_observer
from regard.kernels.threads import parallel_for
from regard.models.decoder import Decoder
from regard.models.transformer import Transformer
from regard.runtime.base import PreparedLanguageModel, PreparedSeq2Seq
from regard.runtime.state import PreparedState, begin, trim_memory
from regard.runtime.transformer.decoder import DecoderStack
from regard.runtime.transformer.encoder import TransformerEncoder
from regard.runtime.transformer.layers import why_not_prepared


class PreparedTransformer(PreparedSeq2Seq[PreparedState]):
    """A Transformer whose decoder steps cost little; see ``PreparedSeq2Seq``."""

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
        self._encoder = TransformerEncoder(model)
        trim_memory()  # of the weights that were packed

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
        if current_observer() is current_editor() is None:
            memory = self._encoder(source, source_lengths)
        else:
            memory = self._read(source, source_lengths)
        layers, width = self._steps.layers, self._steps.width
        return begin(len(source), layers, width, memory=memory, lengths=source_lengths)

    @torch.no_grad()
    def _read(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources as the model makes them, observed and edited."""
        caches = self.model.start(source, source_lengths).memory
        return np.stack([_side_by_side(cache) for cache in caches])


class PreparedDecoder(PreparedLanguageModel[PreparedState]):
    """A language model whose steps cost little; see ``PreparedSeq2Seq``."""

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
        layers, width = self._steps.layers, self._steps.width
        nothing = np.zeros((0, 0, 0, width), np.float32)
        past_length = max(0, prompt.shape[1] - 1)
        state = begin(len(prompt), layers, width, memory=nothing, length=past_length)
        if not prompt.shape[1]:
            return state
        starts = (prompt.shape[1] - prompt_lengths).numpy().astype(np.int32)
        state = replace(
            state,
            pending=prompt.gather(1, prompt_lengths[:, None] - 1)[:, 0],
            starts=starts,
            is_padded=bool(starts.any()),
        )
        is_inference = torch.is_inference_mode_enabled()  # which a thread does not inherit

        def read(row: int) -> None:
            length = int(prompt_lengths[row])
            with torch.inference_mode(is_inference), torch.no_grad():
                past = self.model.start(
                    prompt[row : row + 1, :length], prompt_lengths[row : row + 1]
                ).past
            for layer, cache in zip(state.store.cache, past, strict=True):
                layer[past_length + 1 - length : past_length, row] = _side_by_side(cache)[0]

        # Each by itself: what one gets does not depend on the others.
        if len(prompt) == 1 or current_observer() is not None or current_editor() is not None:
            for row in range(len(prompt)):
                read(row)
        else:
            parallel_for(len(prompt), read)
        return state


def _side_by_side(cache: KeyValueCache) -> Float32[np.ndarray, "B M W"]:
    """Keys and values of all heads in one row a position."""
    heads = [each.transpose(1, 2).flatten(2) for each in (cache.key, cache.value)]
    rows: np.ndarray = torch.cat(heads, dim=-1).numpy()
    return rows
