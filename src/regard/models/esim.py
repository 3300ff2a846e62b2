"""Two texts compared word by word: ESIM of Chen et al. (2017), https://arxiv.org/abs/1609.06038."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, at, attend
from regard.attention import lengths as visible
from regard.checks import check_positive
from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.pooling import Maximum, Mean
from regard.models.configs.readers import EsimConfig
from regard.models.interfaces import PairClassifier


class Esim(PairClassifier):
    """Logits of how two texts stand to each other.

    Both are read by one BiLSTM, ā and b̄. Each word is set beside what it finds in the other text,
    ``ã_i = Σ softmax_j(ā_i · b̄_j) b̄_j``, as ``[ā; ã; ā − ã; ā ⊙ ã]``; a second BiLSTM reads that,
    and mean and maximum of both texts decide.

    Args:
        config: Sizes.
        vocab_size: Number of token ids, V.
        num_classes: How many answers there are.

    Example:
        >>> model = Esim(EsimConfig(embed_dim=6, hidden_dim=4), vocab_size=11, num_classes=2)
        >>> ids = torch.ones(2, 5, dtype=torch.long)
        >>> model(ids, torch.tensor([5, 2]), ids[:, :3], torch.tensor([1, 3])).shape
        torch.Size([2, 2])
    """

    def __init__(self, config: EsimConfig, *, vocab_size: int, num_classes: int = 2) -> None:
        super().__init__()
        check_positive("num_classes", num_classes)
        self.config = config
        self.max_length = None
        hidden = config.hidden_dim
        self.embedding = TokenEmbedding(vocab_size, config.embed_dim, scaled=False)
        # Drawn as the paper draws words without a pretrained vector. Smaller ones make states that
        # are all alike, and neither text finds its own words in the other.
        nn.init.normal_(self.embedding.weight)
        self.dropout = Dropout(config.dropout)
        self.read = RecurrentEncoder("lstm", config.embed_dim, hidden)
        self.compare = nn.Linear(8 * hidden, hidden)
        self.read_again = RecurrentEncoder("lstm", hidden, hidden)
        self.mean, self.maximum = Mean(), Maximum()
        self.decide = nn.Linear(8 * hidden, hidden)
        self.output = nn.Linear(hidden, num_classes)

    def forward(
        self,
        first: Int[Tensor, "B N"],
        first_lengths: Int[Tensor, " B"],
        second: Int[Tensor, "B M"],
        second_lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, "B K"]:
        """The logits.

        Args:
            first: Token ids of one text, padded on the right.
            first_lengths: How many of them are real.
            second: Those of the other.
            second_lengths: How many of them are real.
        """
        a = self.read(self.dropout(self.embedding(first)), first_lengths)[0]
        b = self.read(self.dropout(self.embedding(second)), second_lengths)[0]
        with at("cross", 0):
            found_in_b = attend(a, b, score=Dot(), mask=visible(second_lengths))
        with at("cross", 1):
            found_in_a = attend(b, a, score=Dot(), mask=visible(first_lengths))
        pooled = [
            *self._compose(a, found_in_b, first_lengths),
            *self._compose(b, found_in_a, second_lengths),
        ]
        decided = torch.tanh(self.decide(self.dropout(torch.cat(pooled, dim=-1))))
        logits: Tensor = self.output(self.dropout(decided))
        return logits

    def _compose(self, own: Tensor, found: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and maximum of a text read beside what it found in the other."""
        beside = torch.cat([own, found, own - found, own * found], dim=-1)
        narrow = torch.relu(self.compare(beside))
        states = self.read_again(self.dropout(narrow), lengths)[0]
        return self.mean(states, lengths), self.maximum(states, lengths)
