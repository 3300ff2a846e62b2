"""A label for each word: linear, or with a conditional random field on top.

BiLSTM-CRF: Huang et al. (2015), https://arxiv.org/abs/1508.01991; Lample et al. (2016),
https://arxiv.org/abs/1603.01360.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_positive
from regard.layers import Dropout
from regard.layers.crf import Crf
from regard.models.configs.heads import TaggerConfig
from regard.models.interfaces import Reader


class Tagger(nn.Module):
    """A tag for each position.

    Args:
        config: Options.
        reader: What reads the text: ``Encoder`` or one of ``readers``.
        num_tags: How many tags there are, K.
        allowed: For a CRF: which tag may follow which, and which may come first in the last row.

    Example:
        >>> from regard.models import RecurrentReader, RecurrentReaderConfig
        >>> reader = RecurrentReader(RecurrentReaderConfig(), vocab_size=11)
        >>> model = Tagger(TaggerConfig(crf=True), reader, num_tags=3)
        >>> lengths = torch.tensor([5, 2])
        >>> scores = model(torch.ones(2, 5, dtype=torch.long), lengths)
        >>> model.best(scores, lengths).shape
        torch.Size([2, 5])
    """

    def __init__(
        self,
        config: TaggerConfig,
        reader: Reader,
        *,
        num_tags: int,
        allowed: Bool[Tensor, "rows K"] | None = None,
    ) -> None:
        super().__init__()
        check_positive("num_tags", num_tags)
        self.config = config
        self.reader = reader
        self.max_length = reader.max_length
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(reader.output_dim, num_tags)
        self.crf = Crf(num_tags, allowed=allowed) if config.crf else None

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        *,
        places: Int[Tensor, "B W"] | None = None,
        **reading: Tensor,
    ) -> Float[Tensor, "B W K"]:
        """How well each tag fits each position, or each word.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real.
            places: Which positions are tagged, such as those of the words' first pieces; None is
                all.
            reading: What else the reader takes: ``segments``, ``parts``.
        """
        states = self.reader(ids, lengths, **reading)
        if places is not None:
            states = states[torch.arange(states.shape[0], device=states.device)[:, None], places]
        scores: Tensor = self.output(self.dropout(states))
        return scores

    def loss(
        self,
        scores: Float[Tensor, "B N K"],
        tags: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
    ) -> Float[Tensor, ""]:
        """Minus the log-probability of the tags, summed; of padding nothing."""
        if self.crf is not None:
            return -self.crf.log_prob(scores, tags, lengths).sum()
        real = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]
        return F.cross_entropy(scores[real], tags[real], reduction="sum")

    def best(
        self, scores: Float[Tensor, "B N K"], lengths: Int[Tensor, " B"]
    ) -> Int[Tensor, "B N"]:
        """The likeliest tags; zero in padding."""
        if self.crf is not None:
            return self.crf.best(scores, lengths)
        real = torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]
        return scores.argmax(-1).masked_fill(~real, 0)
