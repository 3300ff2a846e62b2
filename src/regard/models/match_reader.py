"""A text read beside another, such as a passage beside a question.

The reader of DrQA (Chen et al., 2017, https://arxiv.org/abs/1704.00051, section 3.2), and the
attention between what has been read of both of BiDAF (Seo et al., 2017,
https://arxiv.org/abs/1611.01603).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, ScaledDot, at, attend
from regard.attention import lengths as visible
from regard.errors import ShapeError
from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.pooling import LearnedQuery
from regard.models.configs.readers import MatchReaderConfig
from regard.models.interfaces import PairReader


class MatchReader(PairReader):
    """A state for each token of a text that knows what in another text it matches.

    A BiLSTM reads the other text, and a learned query makes one vector of its states ``q_j``. A
    token of the text is read, by another, as its embedding ``e``, what is said of it (its
    ``features``: whether its word stands in the other text, …), the embedding it is aligned with
    there, ``Σ_j softmax_j(relu(W e_i) · relu(W o_j)) o_j``, and that vector: DrQA meets it only
    when the answer's ends are scored. With ``compares``, what both BiLSTMs made of their texts is
    set side by side, ``c_i = Σ_j softmax_j(h_i · q_j) q_j``, or by another similarity, and
    ``[h; c; h ⊙ c]``, and a last one reads how they compare.

    Args:
        config: Sizes.
        vocab_size: Number of token ids, V.
        num_features: How many numbers are said of each token, F.

    Example:
        >>> reader = MatchReader(MatchReaderConfig(), vocab_size=11, num_features=2)
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 2])
        >>> reader(ids, lengths, other=ids[:, :3], other_lengths=torch.tensor([1, 3]),
        ...     features=torch.zeros(2, 5, 2)).shape
        torch.Size([2, 5, 128])
    """

    def __init__(
        self, config: MatchReaderConfig, *, vocab_size: int, num_features: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length = None
        width, hidden = config.embed_dim, config.hidden_dim
        read_dim = 2 * hidden * config.num_layers
        self.output_dim = 2 * hidden if config.compares else read_dim
        self.embedding = TokenEmbedding(vocab_size, width, scaled=False)
        self.dropout = Dropout(config.dropout)
        self.align = nn.Linear(width, width)
        self.read_other = RecurrentEncoder(config.cell, width, hidden)
        self.read_other_on = _further_layers(config)
        self.pool = LearnedQuery(read_dim)
        self.read = RecurrentEncoder(config.cell, 2 * width + read_dim + num_features, hidden)
        self.read_on = _further_layers(config)
        if config.compares:
            self.similarity = Trilinear(read_dim) if config.similarity == "trilinear" else None
            self.compare = nn.Linear(3 * read_dim, 2 * hidden)
            self.read_again = RecurrentEncoder(config.cell, 2 * hidden, hidden)

    def forward(
        self,
        ids: Int[Tensor, "R N"],
        lengths: Int[Tensor, " R"],
        *,
        other: Int[Tensor, "S M"],
        other_lengths: Int[Tensor, " S"],
        features: Float[Tensor, "R N F"],
    ) -> Float[Tensor, "R N C"]:
        """The states, zero in padding.

        Args:
            ids: Token ids of the text, padded on the right.
            lengths: How many of them are real.
            other: Those of the other text; one may serve several rows that follow each other.
            other_lengths: How many of them are real.
            features: What is said of each token.

        Raises:
            ShapeError: The rows of the other text do not divide those of the text.
        """
        if len(ids) % len(other):
            raise ShapeError(
                f"other must have as many rows as ids, or divide them; got {len(other)} for "
                f"{len(ids)}."
            )
        rows = len(ids) // len(other)
        tokens = self.dropout(self.embedding(ids))
        theirs = self.dropout(self.embedding(other))
        read = self._stacked(self.read_other, self.read_other_on, theirs, other_lengths)
        read = self.dropout(read)
        whole = self.pool(read, other_lengths)
        theirs, read, whole = (each.repeat_interleave(rows, 0) for each in (theirs, read, whole))
        mask = visible(other_lengths.repeat_interleave(rows, 0))
        with at("cross", 1):
            query, key = self.align(tokens).relu(), self.align(theirs).relu()
            score = Dot() if self.config.alignment == "dot" else ScaledDot()
            aligned = attend(query, key, theirs.to(key.dtype), score=score, mask=mask)
        everywhere = whole[:, None].expand(-1, ids.shape[1], -1)
        inputs = torch.cat([tokens, aligned, everywhere, features], -1)
        states = self._stacked(self.read, self.read_on, inputs, lengths)
        if not self.config.compares:
            return states
        states = self.dropout(states)
        asking = states if self.similarity is None else self.similarity(states)
        with at("cross", 2):
            found = attend(asking, read, score=Dot(), mask=mask)
        compared = self.compare(torch.cat([states, found, states * found], -1)).relu()
        again: Tensor = self.read_again(self.dropout(compared), lengths)[0]
        return again

    def _stacked(
        self, first: nn.Module, further: nn.ModuleList, inputs: Tensor, lengths: Tensor
    ) -> Float[Tensor, "R N Y"]:
        """The outputs of all layers side by side, each of which reads that of the one before."""
        outputs: list[Tensor] = [first(inputs, lengths)[0]]
        for layer in further:
            outputs.append(layer(self.dropout(outputs[-1]), lengths)[0])
        return torch.cat(outputs, dim=-1)


class Trilinear(nn.Module):
    """BiDAF's similarity of states h and keys u, as queries whose dot product with u it is.

    ``w · [h; u; h ⊙ u] = w₁ · h + (w₂ + w₃ ⊙ h) · u``: Seo et al. (2017), equation 1. Its first
    part is the same for all keys and no softmax over them knows of it: w₁ is left out.

    Args:
        dim: Width of states and keys, C.

    Example:
        >>> similarity = Trilinear(2)
        >>> _ = similarity.of_key.data.copy_(torch.tensor([1.0, 0.0]))
        >>> _ = similarity.of_product.data.copy_(torch.tensor([0.0, 2.0]))
        >>> similarity(torch.tensor([[[5.0, 3.0]]])).tolist()
        [[[1.0, 6.0]]]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.of_key = nn.Parameter(torch.zeros(dim))
        self.of_product = nn.Parameter(torch.ones(dim))

    def forward(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """The queries."""
        return self.of_key + self.of_product * states


def _further_layers(config: MatchReaderConfig) -> nn.ModuleList:
    """The layers after the first, each of which reads the one before."""
    return nn.ModuleList(
        RecurrentEncoder(config.cell, 2 * config.hidden_dim, config.hidden_dim)
        for _ in range(config.num_layers - 1)
    )
