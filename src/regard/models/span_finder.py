"""An answer as a stretch of the text, or none: Devlin et al. (2019), section 4.2 and 4.3."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_at_least
from regard.layers import Dropout
from regard.models.configs.heads import SpanFinderConfig
from regard.models.interfaces import Reader

NO_ANSWER = 0  # the place of the first token, which is no word of the passage


@dataclass(frozen=True)
class AnswerSpans:
    """The best answers.

    Attributes:
        start: The first place of each.
        end: The last place of each, itself included.
        score: The sum of the two logits; −inf where a text has no place for an answer.
        none: The score of there being no answer.

    Example:
        >>> start, end = torch.tensor([[3.0, 1, 5, 0]]), torch.tensor([[3.0, 9, 1, 2]])
        >>> passage = torch.tensor([[False, True, True, True]])
        >>> best_spans(start, end, passage, max_length=2)
        AnswerSpans(start=tensor([1]), end=tensor([1]), score=tensor([10.]), none=tensor([6.]))
    """

    start: Int[Tensor, " B"]
    end: Int[Tensor, " B"]
    score: Float[Tensor, " B"]
    none: Float[Tensor, " B"]


class SpanFinder(nn.Module):
    """Where an answer starts and where it ends: a linear layer with two outputs.

    ``P(start = i) = softmax_i(S · h_i)``, the same for the end; an answer's score is the sum of its
    two logits, and that of no answer is those of the first token.

    Args:
        config: Options.
        reader: What reads question and passage side by side.

    Example:
        >>> from regard.models import RecurrentReader, RecurrentReaderConfig
        >>> reader = RecurrentReader(RecurrentReaderConfig(), vocab_size=11)
        >>> model, lengths = SpanFinder(SpanFinderConfig(), reader), torch.tensor([5, 2])
        >>> start, end = model(torch.ones(2, 5, dtype=torch.long), lengths)
        >>> start.shape, start[1].exp()[2:].tolist()
        (torch.Size([2, 5]), [0.0, 0.0, 0.0])
    """

    def __init__(self, config: SpanFinderConfig, reader: Reader) -> None:
        super().__init__()
        self.config = config
        self.reader = reader
        self.max_length = reader.max_length
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(reader.output_dim, 2)

    def forward(
        self, ids: Int[Tensor, "B N"], lengths: Int[Tensor, " B"], **reading: Tensor
    ) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B N"]]:
        """Logits of the start and of the end; −inf in padding.

        Args:
            ids: Token ids of question and passage, padded on the right.
            lengths: How many of them are real.
            reading: What else the reader takes: ``segments``, ``parts``.
        """
        logits = self.output(self.dropout(self.reader(ids, lengths, **reading)))
        padding = torch.arange(ids.shape[1], device=ids.device) >= lengths[:, None]
        start, end = logits.masked_fill(padding[..., None], -torch.inf).unbind(-1)
        return start, end

    @staticmethod
    def loss(
        start: Float[Tensor, "B N"],
        end: Float[Tensor, "B N"],
        starts: Int[Tensor, " B"],
        ends: Int[Tensor, " B"],
    ) -> Float[Tensor, ""]:
        """Minus the log-probability of both ends, their mean, summed over texts.

        Args:
            start: Logits of the start.
            end: Logits of the end.
            starts: The right start; 0 where there is no answer.
            ends: The right end, itself part of the answer; 0 where there is no answer.
        """
        first = F.cross_entropy(start, starts, reduction="sum")
        return (first + F.cross_entropy(end, ends, reduction="sum")) / 2


def best_spans(
    start: Float[Tensor, "B N"],
    end: Float[Tensor, "B N"],
    allowed: Bool[Tensor, "B N"],
    *,
    max_length: int,
) -> AnswerSpans:
    """The answer with the largest sum of logits, for every text at once.

    Among N × max_length spans, so that long passages cost no N × N.

    Args:
        start: Logits of the start.
        end: Logits of the end.
        allowed: Where an answer may stand: the passage, and not the question.
        max_length: Most tokens of an answer.

    Example:
        >>> start, end = torch.tensor([[0.0, 1, 5, 0]]), torch.tensor([[0.0, 9, 1, 2]])
        >>> found = best_spans(start, end, torch.ones(1, 4, dtype=torch.bool), max_length=2)
        >>> found.start.item(), found.end.item(), found.score.item()
        (1, 1, 10.0)
    """
    check_at_least("max_length", max_length, 1)
    starts = start.masked_fill(~allowed, -torch.inf)
    ends = end.masked_fill(~allowed, -torch.inf)
    ahead = F.pad(ends, (0, max_length - 1), value=-torch.inf).unfold(1, max_length, 1)
    best, step = ahead.max(dim=-1)  # of all ends within reach of each start
    score, first = (starts + best).max(dim=-1)
    last = first + step.gather(1, first[:, None]).squeeze(1)
    return AnswerSpans(first, last, score, start[:, NO_ANSWER] + end[:, NO_ANSWER])
