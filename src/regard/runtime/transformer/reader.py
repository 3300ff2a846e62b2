"""An encoder that reads many texts."""

from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.observing import current_editor, current_observer
from regard.kernels.threads import parallel_blocks
from regard.kernels.transformer import encoder as kernels
from regard.layers import Packing
from regard.models.encoder import Encoder
from regard.models.interfaces import TextReader
from regard.runtime.products import projections
from regard.runtime.transformer.encoder import fit_one_loop, layers_of
from regard.runtime.transformer.layers import (
    PositionTable,
    RotaryTable,
    numbers_of,
    options_of,
    why_not_prepared,
)
from regard.runtime.transformer.layerwise import LayerwiseEncoder

# The longest texts that one loop reads: it has all scores of a text and a head at once.
_LONGEST = 1024


class PreparedReader(TextReader):
    """An encoder that reads texts without padding, all layers in one compiled loop if it is small.

    It gives the same states; what a text gets does not depend on the others. Its weights are
    copies: prepare it again when the model has learned more.

    Args:
        encoder: In evaluation mode.

    Example:
        >>> from regard.models import EncoderConfig
        >>> config = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> encoder = Encoder(config, vocab_size=11).eval()
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 3])
        >>> found, states = PreparedReader(encoder)(ids, lengths), encoder(ids, lengths)
        >>> torch.allclose(found[1, :3], states[1, :3], atol=1e-5)
        True
    """

    reads_features = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        blocks = list(encoder.layers)
        attend = blocks[0].attend
        assert attend is not None
        norm, norm_bias = numbers_of(encoder.embedding_norm)
        self.encoder = encoder
        self.embedding = encoder.embedding  # a head may guess words by it
        self.max_length, self.output_dim = encoder.max_length, encoder.output_dim
        self._ends = kernels.Embeddings(
            key=projections.NO_PROJECTIONS,
            value=projections.NO_PROJECTIONS,
            embedding=projections.embedding_table(encoder.embedding),
            embedding_norm=norm,
            embedding_norm_bias=norm_bias,
        )
        self._options, self._rotary = options_of(blocks, None), RotaryTable(attend.rotary)
        self._layers = (
            layers_of(blocks, encoder.norm)
            if fit_one_loop(blocks)
            else LayerwiseEncoder(blocks, encoder.norm, self._options)
        )
        self._places = PositionTable(encoder.positions, encoder.output_dim)
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
        B, N = ids.shape
        if (N > _LONGEST and B == 1) or not current_observer() is current_editor() is None:
            states: Tensor = self.encoder(ids, lengths, **reading)
            return states
        lengths = torch.full((B,), N) if lengths is None else lengths
        if N > _LONGEST:
            return self._one_by_one(ids, lengths, reading)
        packing, given = Packing(lengths, N), np.zeros((0, 0), np.float32)
        if any(each is not None for each in reading.values()):
            given = packing.pack(self.encoder.embedded(ids, **reading)).numpy()
        places = self._places.until(N)[:N]
        texts = kernels.Sources(
            tokens=packing.pack(ids).numpy(),
            begins=np.array([0, *accumulate(lengths.tolist())]),
            unseen=0,
            places=places if self._first_segment is None else places + self._first_segment,
            mixes_embeddings=False,
        )
        seen = kernels.EncoderPositions(self._rotary.until(N), N)
        if isinstance(self._layers, LayerwiseEncoder):
            layers, width = self._layers, self.output_dim
            x = given.copy() if given.size else layers.embed(texts, self._ends, width)[0]
            read = layers(x, texts.begins, seen)
            return packing.pad(torch.from_numpy(read))
        made = torch.empty(B, N, self.output_dim)
        rest = (texts, given, seen, self._ends, self._layers, self._options, made.numpy())
        parallel_blocks(B, lambda *part: kernels.encode_texts(*part, *rest))
        return made

    def _one_by_one(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        reading: dict[str, Tensor | None],
    ) -> Float[Tensor, "B N C"]:
        """The states of texts of which some are too long for the loop; each is read by itself."""
        states = torch.zeros(*ids.shape, self.output_dim)
        for b, length in enumerate(lengths.tolist()):
            own = {
                k: each if each is None else each[b : b + 1, :length] for k, each in reading.items()
            }
            states[b, :length] = self(ids[b : b + 1, :length], lengths[b : b + 1], **own)[0]
        return states
