"""A text read beside another, such as a passage beside a question.

The reader of DrQA (Chen et al., 2017, https://arxiv.org/abs/1704.00051, section 3.2), and the
attention between what has been read of both of BiDAF (Seo et al., 2017,
https://arxiv.org/abs/1611.01603).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, ScaledDot, at, attend
from regard.attention import lengths as visible
from regard.config import newer
from regard.errors import ShapeError
from regard.fields import Count, Share, check_fields
from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.pooling import LearnedQuery


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchReaderConfig:
    """Sizes of the reader.

    Attributes:
        embed_dim: Width of the embeddings.
        hidden_dim: Width of one direction's state.
        cell: ``rnn``, ``gru`` or ``lstm``.
        compares: Whether what has been read of both texts is set side by side and read again, as in
            BiDAF; without it the reader is DrQA's, at half the cost.
        alignment: How the words of both texts match: by the ``dot`` product, as in DrQA, or by
            ``scaled_dot``, over √E, as runs from before there was the choice.
        dropout: Share dropped of what each layer reads while training.
    """

    embed_dim: Count = 128
    hidden_dim: Count = 64
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    compares: bool = False
    alignment: Literal["dot", "scaled_dot"] = newer("dot", before="scaled_dot")
    dropout: Share = 0.3

    def __post_init__(self) -> None:
        check_fields(self)


class MatchReader(nn.Module):
    """A state for each token of a text that knows what in another text it matches.

    A BiLSTM reads the other text, and a learned query makes one vector of its states ``q_j``. A
    token of the text is read, by another, as its embedding ``e``, what is said of it (its
    ``features``: whether its word stands in the other text, …), the embedding it is aligned with
    there, ``Σ_j softmax_j(relu(W e_i) · relu(W o_j)) o_j``, and that vector: DrQA meets it only
    when the answer's ends are scored. With ``compares``, what both BiLSTMs made of their texts is
    set side by side, ``c_i = Σ_j softmax_j(h_i · q_j) q_j`` and ``[h; c; h ⊙ c]``, and a last one
    reads how they compare.

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
        self.max_length: int | None = None
        width, hidden = config.embed_dim, config.hidden_dim
        self.output_dim = 2 * hidden
        self.embedding = TokenEmbedding(vocab_size, width, scaled=False)
        self.dropout = Dropout(config.dropout)
        self.align = nn.Linear(width, width)
        self.read_other = RecurrentEncoder(config.cell, width, hidden)
        self.pool = LearnedQuery(2 * hidden)
        self.read = RecurrentEncoder(config.cell, 2 * (width + hidden) + num_features, hidden)
        if config.compares:
            self.compare = nn.Linear(6 * hidden, 2 * hidden)
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
        read = self.dropout(self.read_other(theirs, other_lengths)[0])
        whole = self.pool(read, other_lengths)
        theirs, read, whole = (each.repeat_interleave(rows, 0) for each in (theirs, read, whole))
        mask = visible(other_lengths.repeat_interleave(rows, 0))
        with at("cross", 1):
            query, key = self.align(tokens).relu(), self.align(theirs).relu()
            score = Dot() if self.config.alignment == "dot" else ScaledDot()
            aligned = attend(query, key, theirs.to(key.dtype), score=score, mask=mask)
        everywhere = whole[:, None].expand(-1, ids.shape[1], -1)
        states: Tensor = self.read(torch.cat([tokens, aligned, everywhere, features], -1), lengths)[
            0
        ]
        if not self.config.compares:
            return states
        states = self.dropout(states)
        with at("cross", 2):
            found = attend(states, read, score=Dot(), mask=mask)
        compared = self.compare(torch.cat([states, found, states * found], -1)).relu()
        again: Tensor = self.read_again(self.dropout(compared), lengths)[0]
        return again
