"""Transformers and decoder-only language models, packed for many answers."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor

from regard.attention import KeyValueCache
from regard.attention.observing import current_observer
from regard.layers.inputs import texts, valid_ids
from regard.models.decoder import Decoder, DecoderState
from regard.models.interfaces import AlignedPrompt
from regard.models.transformer import Transformer
from regard.runtime.base import PreparedLanguageModel, PreparedSeq2Seq, check_unedited
from regard.runtime.products import size_of
from regard.runtime.state import PreparedState, trim_memory
from regard.runtime.transformer.decoder import DecoderStack
from regard.runtime.transformer.encoder import LONGEST, TransformerEncoder
from regard.runtime.transformer.layers import why_not_prepared


class PreparedTransformer(PreparedSeq2Seq[PreparedState]):
    """A Transformer whose decoder steps cost little; see ``PreparedSeq2Seq``."""

    model: Transformer
    _steps: DecoderStack

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        self._steps = DecoderStack(
            model,
            list(model.decoder),
            embedding=model.target_embedding,
            positions=model.target_positions or model.positions,
            norm=model.decoder_norm,
            embedding_norm=model.target_norm,
            output_bias=model.output_bias,
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
        check_unedited()
        source, source_lengths = texts("source", source, source_lengths)
        valid_ids("token ids", source, size_of(self.model.source_embedding))
        read = self._encoder if current_observer() is None else self._read
        memory = read(source, source_lengths)
        return self._steps.begin(len(source), memory, source_lengths.numpy())

    def _read(
        self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, " B"]
    ) -> Float32[np.ndarray, "L B M W"]:
        """Keys and values of the sources as the model makes them, observed."""
        caches = self.model.start(source, source_lengths).memory
        return np.stack([_side_by_side(cache) for cache in caches])


class PreparedDecoder(PreparedLanguageModel[PreparedState]):
    """A language model whose steps cost little; see ``PreparedSeq2Seq``."""

    model: Decoder
    _steps: DecoderStack

    def __init__(self, model: Decoder) -> None:
        super().__init__(model)
        self._steps = DecoderStack(
            model,
            list(model.layers),
            embedding=model.embedding,
            positions=model.positions,
            norm=model.norm,
        )

    @staticmethod
    def refuse(model: Decoder) -> str | None:
        """Why a model cannot be prepared, or None if it can."""
        return why_not_prepared(list(model.layers))

    @torch.no_grad()
    def start(self, prompt: Int[Tensor, "B S"], prompt_lengths: Int[Tensor, " B"]) -> PreparedState:
        check_unedited()
        cut = AlignedPrompt.of(prompt, prompt_lengths)
        rows, past_length = cut.aligned.shape
        valid_ids("token ids", prompt, self._steps.vocab_size)
        state = self._steps.begin(rows, length=past_length)
        if cut.last is None:
            return state
        starts = cut.padding.numpy().astype(np.int32)
        state = replace(state, pending=cut.last, starts=starts, is_padded=not cut.is_even)
        texts = {
            row: ids[first:]
            for row, (ids, first) in enumerate(zip(cut.aligned.numpy(), starts, strict=True))
            if first < past_length
        }
        is_plain = current_observer() is None
        short = {row: ids for row, ids in texts.items() if is_plain and len(ids) <= LONGEST}
        if short:
            self._steps.prompt_reader(short, state.store.cache, past_length)
        past = state.store.cache[:, :past_length]
        for row in texts.keys() - short.keys():
            nothing_read = DecoderState(self.model.layers.empty_caches(1))
            _, after = self.model.read(torch.from_numpy(texts[row])[None], nothing_read)
            for layer, cache in zip(past, after.past, strict=True):
                layer[-len(texts[row]) :, row] = _side_by_side(cache)[0]
        return state


def _side_by_side(cache: KeyValueCache) -> Float32[np.ndarray, "B M W"]:
    """Keys and values of all heads in one row a position."""
    heads = [states.transpose(1, 2).flatten(2) for states in (cache.key, cache.value)]
    rows: np.ndarray = torch.cat(heads, dim=-1).numpy()
    return rows
