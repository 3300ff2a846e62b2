"""One label for a text: what read it, one vector of that, and a linear layer."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.checks import check_positive
from regard.layers import Dropout
from regard.layers.pooling import Pooling
from regard.models.configs.heads import ClassifierConfig
from regard.models.interfaces import Reader


class Classifier(nn.Module):
    """Logits of the classes from a text, or from two side by side (a cross-encoder).

    ``W pool(h_1 … h_n) + b``; with a pooler, ``W tanh(U pool(h_1 … h_n) + a) + b``. The model of
    Zhou et al. (2016, https://aclanthology.org/P16-2034) is a ``RecurrentReader`` with the pooling
    ``tanh_query``, that of Lin et al. (2017, https://arxiv.org/abs/1703.03130) one with
    ``structured``, that of Kim (2014) a ``ConvReader`` with ``maximum``; with ``query`` that is
    attention over convolutions.

    Args:
        config: Options.
        reader: What reads the text: ``Encoder`` or one of ``readers``.
        num_classes: How many labels there are.
        num_aspects: How many aspects there are, for pooling by aspect.

    Example:
        >>> from regard.models import BagReader, BagReaderConfig
        >>> reader = BagReader(BagReaderConfig(), vocab_size=11)
        >>> model = Classifier(ClassifierConfig(), reader, num_classes=3)
        >>> model(torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 2])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        config: ClassifierConfig,
        reader: Reader,
        *,
        num_classes: int,
        num_aspects: int = 0,
    ) -> None:
        super().__init__()
        check_positive("num_classes", num_classes)
        self.config = config
        self.reader = reader
        self.max_length = reader.max_length
        self.pooling = Pooling(
            config.pooling,
            reader.output_dim,
            num_aspects=num_aspects,
            num_hops=config.num_hops,
            hidden_dim=config.attention_dim,
        )
        width = self.pooling.output_dim
        self.pooler = nn.Linear(width, width) if config.pooler else None
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, num_classes)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        *,
        aspects: Int[Tensor, " B"] | None = None,
        return_penalty: bool = False,
        **reading: Tensor,
    ) -> Float[Tensor, "B K"] | tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
        """The logits.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real.
            aspects: What each text is read for, with pooling by aspect.
            return_penalty: Whether to return what each text adds to the loss as well, which is
                nothing but in training.
            reading: What else the reader takes: ``segments``, ``parts``.
        """
        states = self.reader(ids, lengths, **reading)
        pooled = self.pooling(states, lengths, aspects=aspects)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler(pooled))
        logits: Tensor = self.output(self.dropout(pooled))
        if not return_penalty:
            return logits
        if not (self.training and self.config.penalty):
            return logits, states.new_zeros(states.shape[0])
        return logits, self.config.penalty * self.pooling.penalty(states, lengths)


class MultipleChoice(nn.Module):
    """Multiple choice: scores each answer, read together with its question.

    Args:
        config: Options.
        reader: What reads question and answer side by side.

    Example:
        >>> from regard.models import BagReader, BagReaderConfig
        >>> reader = BagReader(BagReaderConfig(), vocab_size=11)
        >>> model = MultipleChoice(ClassifierConfig(), reader)
        >>> ids = torch.ones(2, 3, 5, dtype=torch.long)
        >>> model(ids, torch.tensor([[5, 2, 3], [4, 5, 0]])).softmax(-1)[1, 2].item()
        0.0
    """

    def __init__(self, config: ClassifierConfig, reader: Reader) -> None:
        super().__init__()
        self.score = Classifier(config, reader, num_classes=1)
        self.max_length = self.score.max_length

    def forward(
        self,
        ids: Int[Tensor, "B A N"],
        lengths: Int[Tensor, "B A"],
        *,
        return_penalty: bool = False,
        **reading: Tensor,
    ) -> Float[Tensor, "B A"] | tuple[Float[Tensor, "B A"], Float[Tensor, " B"]]:
        """The logits of the answers.

        Args:
            ids: Token ids of each answer with its question, padded on the right.
            lengths: How many of them are real; 0 where a question has fewer answers, which can
                never be chosen.
            return_penalty: Whether to return what each question's answers add to the loss as well.
            reading: What else the reader takes, with an axis of answers as well.
        """
        flat = {name: each.flatten(0, 1) for name, each in reading.items()}
        scores, penalty = self.score(
            ids.flatten(0, 1), lengths.flatten().clamp(min=1), return_penalty=True, **flat
        )
        absent = lengths == 0
        logits: Tensor = scores.view(lengths.shape).masked_fill(absent, -torch.inf)
        if not return_penalty:
            return logits
        return logits, penalty.view(lengths.shape).masked_fill(absent, 0).sum(-1)
