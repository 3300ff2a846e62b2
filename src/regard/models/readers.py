"""Readers of a text for a head: a state for each position. The Transformer's is ``Encoder``.

Each is called with ids and lengths; what else one takes (``segments``, ``parts``) a head hands on.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.parts import PartsEmbedding, check_given
from regard.models.configs.readers import BagReaderConfig, ConvReaderConfig, RecurrentReaderConfig
from regard.models.interfaces import TextReader


class BagReader(TextReader):
    """The embeddings themselves: no word knows its neighbours.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        parts_vocab: Number of part ids, where words are read from their parts.

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
        """The embeddings, those of padding zero.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real; None is all.
            parts: Ids of each word's parts, padded with 0.

        Raises:
            SettingError: Parts are missing where words are read from them, or not wanted.
        """
        check_given(parts, self.config.parts)
        states = self.embedding(ids)
        if parts is not None and self.parts is not None:
            states = torch.cat([states, self.parts(parts)], dim=-1)
        if lengths is not None:
            real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
            states = states * real[..., None]
        dropped: Tensor = self.dropout(states)
        return dropped


class RecurrentReader(TextReader):
    """A bidirectional recurrence: Schuster & Paliwal (1997), Graves & Schmidhuber (2005).

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        parts_vocab: Number of part ids, where words are read from their parts.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> reader = RecurrentReader(RecurrentReaderConfig(hidden_dim=2), vocab_size=11).eval()
        >>> one, other = reader(torch.tensor([[4, 7], [4, 9]]))
        >>> torch.isclose(one[0], other[0]).tolist()  # what comes later is read backwards alone
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
        """Both directions' states side by side, zero in padding; see :class:`BagReader`."""
        if lengths is None:
            lengths = torch.full((len(ids),), ids.shape[1], device=ids.device)
        states: Tensor = self.recurrence(self.words(ids, lengths, parts=parts), lengths)[0]
        return states


class ConvReader(TextReader):
    """Filters of several widths over the words around each: Kim (2014), https://arxiv.org/abs/1408.5882.

    A head that takes the ``maximum`` over time makes it the paper's model, one that attends
    attention over convolutions. A filter's answer at a word is that of the window around it, which
    may reach beyond the text's ends, as in the paper's code; there is nothing but zeros.

    Args:
        config: Sizes and options.
        vocab_size: Number of token ids, V.
        parts_vocab: Number of part ids, where words are read from their parts.

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
        return torch.cat([filters(each) for filters, each in pairs], dim=1).relu().mT
