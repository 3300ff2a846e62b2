"""The Transformer's encoder by itself, pretrained by guessing masked words.

BERT: Devlin et al. (2019), https://arxiv.org/abs/1810.04805.
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import lengths as visible
from regard.errors import SettingError
from regard.layers import Dropout, Packing, TokenEmbedding
from regard.layers.block import BlockStack, TransformerBlock
from regard.layers.norms import final_norm, make_norm
from regard.layers.parts import PartsEmbedding, check_given
from regard.layers.positions import added_positions, turned_positions
from regard.models.configs.language_models import DecoderConfig
from regard.models.configs.readers import EncoderConfig
from regard.models.interfaces import TextReader


def transformer_layers(
    config: EncoderConfig | DecoderConfig, kind: str, *, num_key_heads: int | None = None
) -> BlockStack:
    """The layers of a Transformer that reads one text.

    Args:
        config: Their number and sizes.
        kind: What an observer is told: "encoder" or "decoder".
        num_key_heads: Heads of keys and values; None is as many as of queries.
    """
    return BlockStack(
        config.num_layers,
        partial(
            TransformerBlock,
            kind,
            model_dim=config.model_dim,
            num_heads=config.num_heads,
            num_key_heads=num_key_heads,
            ffn_dim=config.ffn_dim,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            norm=config.norm,
            norm_kind=config.norm_kind,
            norm_eps=config.norm_eps,
            activation=config.activation,
            rotary=turned_positions(config.positions, config.model_dim // config.num_heads),
        ),
    )


class Encoder(TextReader):
    """A state for each token that has seen all the others.

    Embeddings of token, parts, place and segment and what the features say are added and normed;
    each layer is self-attention and feed-forward.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        parts_vocab: Number of part ids, where words are read from their parts.
        num_features: How many numbers are said of each token besides, F, such as whether its word
            stands in a text beside it (Chen et al., 2017, https://arxiv.org/abs/1704.00051,
            section 3.2). They begin without effect: what was learned without them still holds.
        pad_id: The id of padding.

    Example:
        >>> config = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> Encoder(config, vocab_size=11)(torch.ones(2, 5, dtype=torch.long)).shape
        torch.Size([2, 5, 8])
    """

    reads_features = True

    def __init__(
        self,
        config: EncoderConfig,
        *,
        vocab_size: int,
        parts_vocab: int = 0,
        num_features: int = 0,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        self.config = config
        self.output_dim = width = config.model_dim
        self.max_length = config.max_length if config.positions == "learned" else None
        is_scaled = config.positions == "sinusoidal"  # their size is one, as in the paper
        self.embedding = TokenEmbedding(vocab_size, width, pad_id=pad_id, scaled=is_scaled)
        self.parts: PartsEmbedding | None = None
        if config.parts != "none":
            self.parts = PartsEmbedding(config.parts, vocab_size=parts_vocab, output_dim=width)
        self.features: nn.Linear | None = None
        if num_features:
            self.features = nn.Linear(num_features, width, bias=False)
            nn.init.zeros_(self.features.weight)
        self.positions = added_positions(config.positions, width, max_length=config.max_length)
        self.segments = (
            nn.Parameter(torch.randn(config.num_segments, width) * width**-0.5)
            if config.num_segments
            else None
        )
        self.embedding_norm = make_norm(config.norm_kind, width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.layers = transformer_layers(config, "encoder")
        self.norm = final_norm(config.norm, config.norm_kind, width, eps=config.norm_eps)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        segments: Int[Tensor, "B N"] | None = None,
        parts: Int[Tensor, "B N L"] | None = None,
        features: Float[Tensor, "B N F"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """The states; those of padding mean nothing.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real; None is all.
            segments: Which text each belongs to, from 0; None is all to the first.
            parts: Ids of each word's parts, padded with 0.
            features: What is said of each token besides; None is nothing.

        Raises:
            ShapeError: A text is longer than learned positions go.
            SettingError: Parts are missing where words are read from them, or not wanted; or
                features are not.
        """
        states = self.embedded(ids, segments=segments, parts=parts, features=features)
        mask = None if lengths is None else visible(lengths)
        packing = Packing.if_worthwhile(lengths, ids.shape[1])
        if packing is not None:
            states = packing.pack(states)
        states = self.norm(self.layers(states, mask=mask, packing=packing)[0])
        return states if packing is None else packing.pad(states)

    def embedded(
        self,
        ids: Int[Tensor, "B N"],
        *,
        segments: Int[Tensor, "B N"] | None = None,
        parts: Int[Tensor, "B N L"] | None = None,
        features: Float[Tensor, "B N F"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """Inputs of the first layer; arguments and errors are those of ``forward``."""
        check_given(parts, self.config.parts)
        if features is not None and self.features is None:
            raise SettingError("features must be left out where num_features is 0; got some.")
        states = self.embedding(ids)
        if parts is not None and self.parts is not None:
            states = states + self.parts(parts)
        if features is not None and self.features is not None:
            states = states + self.features(features.to(states.dtype))
        if self.positions is not None:
            states = self.positions(states)
        if self.segments is not None:
            states = states + (self.segments[0] if segments is None else self.segments[segments])
        embedded: Tensor = self.dropout(self.embedding_norm(states))
        return embedded


class MaskedLanguageModel(nn.Module):
    """An encoder that guesses masked words, and whether one sentence follows another.

    Devlin et al. (2019), section 3.1: ``softmax(E · norm(gelu(W h)) + b)`` with the embeddings' own
    table E, and a linear layer on ``tanh(W h_0)`` of the first position.

    Args:
        config: Sizes and options of the encoder.
        vocab_size: Number of token ids, V.
        pad_id: The id of padding.

    Example:
        >>> config = EncoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> model = MaskedLanguageModel(config, vocab_size=11).eval()
        >>> states = model(torch.ones(2, 5, dtype=torch.long))
        >>> model.project(states[:, 3]).shape, model.follows(states).shape
        (torch.Size([2, 11]), torch.Size([2, 2]))
    """

    def __init__(self, config: EncoderConfig, *, vocab_size: int, pad_id: int = 0) -> None:
        super().__init__()
        width = config.model_dim
        self.encoder = Encoder(config, vocab_size=vocab_size, pad_id=pad_id)
        self.max_length = self.encoder.max_length
        self.transform = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.pooler = nn.Linear(width, width)
        self.next_sentence = nn.Linear(width, 2)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        segments: Int[Tensor, "B N"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """The encoder's states, for :meth:`project` and :meth:`follows`."""
        states: Tensor = self.encoder(ids, lengths, segments=segments)
        return states

    def project(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch V"]:
        """The logits of the words at these states; pass only the masked ones."""
        return self.encoder.embedding.logits(self.norm(F.gelu(self.transform(states)))) + self.bias

    def follows(self, states: Float[Tensor, "B N C"]) -> Float[Tensor, "B 2"]:
        """Logits of whether the second sentence follows the first, and of whether it does not."""
        logits: Tensor = self.next_sentence(torch.tanh(self.pooler(states[:, 0])))
        return logits
