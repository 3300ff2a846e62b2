"""The encoder of a model with a head, packed for many texts."""

from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observing import current_editor, current_observer
from regard.kernels.transformer.encoder import Answers, Embeddings, EncoderPositions, Sources
from regard.layers.heads import Packing
from regard.layers.inputs import rows_of_ids, texts, valid_ids
from regard.models.interfaces import TextReader
from regard.models.readers import Encoder
from regard.runtime.products import embedding_table, size_of
from regard.runtime.transformer.encoder import LONGEST, EncoderLoop, layers_of
from regard.runtime.transformer.layers import (
    PositionTable,
    RotaryTable,
    options_of,
    weights_of,
    why_not_prepared,
)


class PreparedReader(TextReader):
    """An encoder without padding, in one compiled loop; see ``PreparedSeq2Seq``."""

    reads_features = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        blocks = list(encoder.layers)
        self.encoder = encoder
        self.embedding = encoder.embedding  # a head may predict words by it
        self.max_length, self.output_dim = encoder.max_length, encoder.output_dim
        table = embedding_table(encoder.embedding)
        embeddings = Embeddings(table, *weights_of(encoder.embedding_norm))
        layers, options = layers_of(blocks, encoder.norm), options_of(blocks, None)
        self._loop = EncoderLoop(embeddings, layers, options)
        self._rotary = RotaryTable(blocks[0].attend.rotary)
        self._positions = PositionTable(encoder.positions, encoder.embedding.weight.shape[1])
        segments = encoder.segments
        self._first_segment = None if segments is None else segments[0].detach().numpy()

    @staticmethod
    def refuse(encoder: Encoder) -> str | None:
        """Why an encoder cannot be prepared, or None if it can."""
        return why_not_prepared(list(encoder.layers))

    @torch.no_grad()
    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        segments: Int[Tensor, "B N"] | None = None,
        parts: Int[Tensor, "B N L"] | None = None,
        features: Float[Tensor, "B N F"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """See the encoder, whose attention can be watched and edited here as well."""
        reading = {"segments": segments, "parts": parts, "features": features}
        ids = valid_ids("token ids", rows_of_ids("ids", ids), size_of(self.embedding))
        B, N = ids.shape
        lengths = torch.full((B,), N) if lengths is None else texts("ids", ids, lengths)[1]
        if (N > LONGEST and B == 1) or not current_observer() is current_editor() is None:
            states: Tensor = self.encoder(ids, lengths, **reading)
            return states
        if N > LONGEST:
            return self._one_by_one(ids, lengths, reading)
        packing, inputs = Packing(lengths, N), np.zeros((0, 0), np.float32)
        if self.encoder.widen is not None or any(
            argument is not None for argument in reading.values()
        ):
            inputs = packing.pack(self.encoder.embedded(ids, **reading)).numpy()
        places = self._positions.until(N)[:N]
        if self._first_segment is not None:
            places = places + self._first_segment
        begins = np.array([0, *accumulate(lengths.tolist())])
        sources = Sources(packing.pack(ids).numpy(), begins, places, inputs)
        states = torch.zeros(B, N, self.output_dim)
        positions = EncoderPositions(self._rotary.until(N), N, N)
        self._loop(sources, positions, Answers(states=states.numpy()))
        return states

    def _one_by_one(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        reading: dict[str, Tensor | None],
    ) -> Float[Tensor, "B N C"]:
        """The states of texts of which some are too long for the loop; each is read by itself."""
        states = torch.zeros(*ids.shape, self.output_dim)
        for b, length in enumerate(lengths.tolist()):
            inputs = {
                k: argument if argument is None else argument[b : b + 1, :length]
                for k, argument in reading.items()
            }
            states[b, :length] = self(ids[b : b + 1, :length], lengths[b : b + 1], **inputs)[0]
        return states
