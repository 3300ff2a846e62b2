"""Readers of a text for a head, a state for each position; and BERT's pretraining.

BERT: Devlin et al. (2019), https://arxiv.org/abs/1810.04805. Each is called with ids and lengths;
a head hands on further inputs (``segments``, ``parts``).
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import lengths as visible
from regard.errors import SettingError
from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.block import BlockStack, TransformerBlock
from regard.layers.embedding import PartsEmbedding, check_parts
from regard.layers.heads import Packing
from regard.layers.inputs import check_beside, real_positions, rows_of_ids, texts, valid_ids
from regard.layers.positions import added_positions, turned_positions
from regard.layers.residual import final_norm, make_norm
from regard.models.configs import LayersConfig
from regard.models.configs.generation import DecoderConfig, TransformerConfig
from regard.models.configs.readers import (
    BagReaderConfig,
    ConvReaderConfig,
    EncoderConfig,
    RecurrentReaderConfig,
)
from regard.models.interfaces import TextReader

# Settings of a model that each of its layers has.
_OF_LAYERS = (
    *("model_dim", "num_heads", "ffn_dim", "dropout", "attention_dropout"),
    *("norm", "norm_kind", "norm_eps", "activation"),
)


def block_options(config: LayersConfig | TransformerConfig) -> dict[str, Any]:
    """The options of a ``TransformerBlock`` that a config names as the block does."""
    return {name: getattr(config, name) for name in _OF_LAYERS if hasattr(config, name)}


def transformer_layers(
    config: EncoderConfig | DecoderConfig, kind: str, *, num_key_heads: int | None = None
) -> BlockStack:
    """The layers of a Transformer that reads one text; observers are told their ``kind``."""
    return BlockStack(
        config.num_layers,
        partial(
            TransformerBlock,
            kind,
            num_key_heads=num_key_heads,
            rotary=turned_positions(
                config.positions,
                config.model_dim // config.num_heads,
                base=config.rotary_base if isinstance(config, DecoderConfig) else 10_000.0,
            ),
            **block_options(config),
        ),
    )


class Encoder(TextReader):
    """A state for each token that has seen all the others.

    Embeddings of token, parts, position, segment and features are added, normed, and
    widened where they are narrower than states; each layer is self-attention and feed-forward.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        parts_vocab: Number of part ids, where words are read from their parts.
        num_features: How many numbers are said of each token besides, F, such as whether its word
            stands in a text beside it (Chen et al., 2017, https://arxiv.org/abs/1704.00051,
            section 3.2). They begin without effect, so weights trained without them stay valid.
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
        self.output_dim = config.model_dim
        width = config.embedding_dim or config.model_dim
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
        self.segments: nn.Parameter | None = None
        if config.num_segments:
            self.segments = nn.Parameter(torch.randn(config.num_segments, width) * width**-0.5)
        self.embedding_norm = make_norm(config.norm_kind, width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.widen = nn.Linear(width, self.output_dim) if config.embedding_dim else None
        self.layers = transformer_layers(config, "encoder")
        self.norm = final_norm(config.norm, config.norm_kind, self.output_dim, eps=config.norm_eps)

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
            features: Further numbers of each token; None is none.

        Raises:
            ShapeError: A text is longer than learned positions go.
            SettingError: Parts are missing where words are read from them, or not wanted; or
                features are not.
        """
        ids = rows_of_ids("ids", ids)
        if lengths is not None:
            ids, lengths = texts("ids", ids, lengths)
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
        check_parts(parts, self.config.parts, ids)
        if features is not None and self.features is None:
            raise SettingError("features must be left out where num_features is 0; got some.")
        for name, numbers in (("segments", segments), ("features", features)):
            if numbers is not None:
                check_beside(name, numbers, ids)
        states = self.embedding(ids)
        if parts is not None and self.parts is not None:
            states = states + self.parts(parts)
        if features is not None and self.features is not None:
            states = states + self.features(features.to(states.dtype))
        if self.positions is not None:
            states = self.positions(states)
        if self.segments is not None:
            if segments is None:
                states = states + self.segments[0]
            else:
                states = states + self.segments[valid_ids("segments", segments, len(self.segments))]
        embedded: Tensor = self.dropout(self.embedding_norm(states))
        return embedded if self.widen is None else self.widen(embedded)


class MaskedLanguageModel(nn.Module):
    """An encoder that guesses masked words, and whether one sentence follows another.

    Devlin et al. (2019), section 3.1: ``softmax(E · norm(gelu(W h)) + b)`` with the embeddings' own
    table E, and a linear layer on ``tanh(W h_0)`` of the first position. Where embeddings are of
    another width than states, the activation is that of the layers, as in ALBERT.

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
        narrow = config.embedding_dim or width
        is_tanh = bool(config.embedding_dim) and config.activation == "gelu_tanh"
        self.approximate = "tanh" if is_tanh else "none"
        self.encoder = Encoder(config, vocab_size=vocab_size, pad_id=pad_id)
        self.max_length = self.encoder.max_length
        self.transform = nn.Linear(width, narrow)
        self.norm = nn.LayerNorm(narrow, eps=config.norm_eps)
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
        guessed = F.gelu(self.transform(states), approximate=self.approximate)
        return self.encoder.embedding.logits(self.norm(guessed)) + self.bias

    def follows(self, states: Float[Tensor, "B N C"]) -> Float[Tensor, "B 2"]:
        """Logits of whether the second sentence follows the first, and of whether it does not."""
        logits: Tensor = self.next_sentence(torch.tanh(self.pooler(states[:, 0])))
        return logits


class BagReader(TextReader):
    """The embeddings themselves: no word knows its neighbours.

    Example:
        >>> reader = BagReader(BagReaderConfig(embed_dim=3), vocab_size=11).eval()
        >>> states = reader(torch.tensor([[4, 7, 4], [7, 0, 0]]), torch.tensor([3, 1]))
        >>> states.shape, torch.equal(states[0, 1], states[1, 0]), states.count_nonzero(dim=-1)
        (torch.Size([2, 3, 3]), True, tensor([[3, 3, 3], [3, 0, 0]]))
    """

    def __init__(self, config: BagReaderConfig, *, vocab_size: int, parts_vocab: int = 0) -> None:
        super().__init__()
        self.config = config
        self.max_length = None
        self.embedding = TokenEmbedding(vocab_size, config.embed_dim, scaled=False)
        self.output_dim = config.embed_dim
        self.parts: PartsEmbedding | None = None
        if config.parts != "none":
            self.parts = PartsEmbedding(
                config.parts, vocab_size=parts_vocab, output_dim=config.parts_dim
            )
            self.output_dim += config.parts_dim
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        parts: Int[Tensor, "B N L"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """The embeddings, those of padding zero; ``parts`` has ids of each word's, padded with 0.

        Raises:
            SettingError: Parts are missing where words are read from them, or not wanted.
        """
        ids = rows_of_ids("ids", ids)
        check_parts(parts, self.config.parts, ids)
        if lengths is not None:
            ids, lengths = texts("ids", ids, lengths)
        states = self.embedding(ids)
        if parts is not None and self.parts is not None:
            states = torch.cat([states, self.parts(parts)], dim=-1)
        if lengths is not None:
            states = states * real_positions(lengths, ids.shape[1])[..., None]
        dropped: Tensor = self.dropout(states)
        return dropped


class RecurrentReader(TextReader):
    """A bidirectional recurrence: Schuster & Paliwal (1997), Graves & Schmidhuber (2005).

    Example:
        >>> _ = torch.manual_seed(0)
        >>> reader = RecurrentReader(RecurrentReaderConfig(hidden_dim=2), vocab_size=11).eval()
        >>> one, other = reader(torch.tensor([[4, 7], [4, 9]]))
        >>> torch.isclose(one[0], other[0]).tolist()  # later words are read backwards alone
        [True, True, False, False]
    """

    def __init__(
        self, config: RecurrentReaderConfig, *, vocab_size: int, parts_vocab: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length = None
        self.words = BagReader(config, vocab_size=vocab_size, parts_vocab=parts_vocab)
        self.output_dim = 2 * config.hidden_dim
        self.recurrence = RecurrentEncoder(
            config.cell,
            self.words.output_dim,
            config.hidden_dim,
            num_layers=config.num_layers,
            dropout=config.dropout,
        )

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        parts: Int[Tensor, "B N L"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        ids = rows_of_ids("ids", ids)
        if lengths is None:
            lengths = torch.full((len(ids),), ids.shape[1], device=ids.device)
        ids, lengths = texts("ids", ids, lengths)
        states: Tensor = self.recurrence(self.words(ids, lengths, parts=parts), lengths)[0]
        return states


class ConvReader(TextReader):
    """Filters of several widths over the words around each: Kim (2014), https://arxiv.org/abs/1408.5882.

    A head that takes the ``maximum`` over time makes it the paper's model, one that attends
    attention over convolutions. A filter's answer at a word is that of the window around it, which
    may reach beyond the text's ends, as in the paper's code; there is nothing but zeros.

    Example:
        >>> reader = ConvReader(ConvReaderConfig(channels=4, widths=(2, 3)), vocab_size=11)
        >>> reader(torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 2])).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, config: ConvReaderConfig, *, vocab_size: int, parts_vocab: int = 0) -> None:
        super().__init__()
        self.config = config
        self.max_length = None
        self.words = BagReader(config, vocab_size=vocab_size, parts_vocab=parts_vocab)
        self.output_dim = config.channels * len(config.widths)
        self.filters = nn.ModuleList(
            nn.Conv1d(self.words.output_dim, config.channels, width) for width in config.widths
        )

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"] | None = None,
        *,
        parts: Int[Tensor, "B N L"] | None = None,
    ) -> Float[Tensor, "B N C"]:
        """Outputs of the filters at each word; see :class:`BagReader`."""
        words = self.words(ids, lengths, parts=parts).mT
        around = [F.pad(words, ((width - 1) // 2, width // 2)) for width in self.config.widths]
        pairs = zip(self.filters, around, strict=True)
        return torch.cat([filters(padded) for filters, padded in pairs], dim=1).relu().mT
