"""One label for a text: what read it, one vector of that, and a linear layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.checks import check_positive
from regard.fields import Share, check_fields
from regard.layers import Dropout
from regard.layers.pooling import Pooling, PoolingName


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig:
    """Options of the head.

    Attributes:
        pooling: How a text becomes one vector: its ``first`` state, the ``mean``, the ``maximum``,
            or what a query gathers: a learned one (``query``), one made of the text (``state``), or
            that of the text's ``aspect``.
        pooler: Whether that vector goes through a linear layer and tanh before the last layer, as
            BERT's does (Devlin et al., 2019); what training began with may have learned it.
        dropout: Share dropped of that vector while training.
    """

    pooling: PoolingName = "mean"
    pooler: bool = False
    dropout: Share = 0.2

    def __post_init__(self) -> None:
        check_fields(self)


class Classifier(nn.Module):
    """Logits of the classes from a text, or from two side by side (a cross-encoder).

    ``W pool(h_1 … h_n) + b``; with a pooler, ``W tanh(U pool(h_1 … h_n) + a) + b``. Attention over
    a BiLSTM (Zhou et al., 2016, https://aclanthology.org/P16-2034) is a ``RecurrentReader`` with a
    query; over convolutions, a ``ConvReader`` with one.

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
        reader: nn.Module,
        *,
        num_classes: int,
        num_aspects: int = 0,
    ) -> None:
        super().__init__()
        check_positive("num_classes", num_classes)
        self.config = config
        self.reader = reader
        self.max_length: int | None = reader.max_length  # type: ignore[assignment]
        width = int(reader.output_dim)  # type: ignore[arg-type]
        self.pooling = Pooling(config.pooling, width, num_aspects=num_aspects)
        self.pooler = nn.Linear(width, width) if config.pooler else None
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, num_classes)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        *,
        aspects: Int[Tensor, " B"] | None = None,
        **reading: Tensor,
    ) -> Float[Tensor, "B K"]:
        """The logits.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real.
            aspects: What each text is read for, with pooling by aspect.
            reading: What else the reader takes: ``segments``, ``parts``.
        """
        states = self.reader(ids, lengths, **reading)
        pooled = self.pooling(states, lengths, aspects=aspects)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler(pooled))
        logits: Tensor = self.output(self.dropout(pooled))
        return logits


class MultipleChoice(nn.Module):
    """Which of some answers is right: each is read together with the question, and given a score.

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

    def __init__(self, config: ClassifierConfig, reader: nn.Module) -> None:
        super().__init__()
        self.score = Classifier(config, reader, num_classes=1)
        self.max_length = self.score.max_length

    def forward(
        self, ids: Int[Tensor, "B A N"], lengths: Int[Tensor, "B A"], **reading: Tensor
    ) -> Float[Tensor, "B A"]:
        """The logits of the answers.

        Args:
            ids: Token ids of each answer with its question, padded on the right.
            lengths: How many of them are real; 0 where a question has fewer answers, which can
                never be chosen.
            reading: What else the reader takes, with an axis of answers as well.
        """
        flat = {name: each.flatten(0, 1) for name, each in reading.items()}
        scores: Tensor = self.score(ids.flatten(0, 1), lengths.flatten().clamp(min=1), **flat)
        return scores.view(lengths.shape).masked_fill(lengths == 0, -torch.inf)
