"""Heads on a reader: a label for a text, a tag for each word, an answer as a span.

BERT's heads are Devlin et al. (2019), sections 4.1 to 4.3; BiLSTM-CRF is Huang et al. (2015),
https://arxiv.org/abs/1508.01991, and Lample et al. (2016), https://arxiv.org/abs/1603.01360.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_count
from regard.errors import ShapeError
from regard.layers import Dropout
from regard.layers.crf import Crf
from regard.layers.inputs import real_positions, rows_of_ids, texts, valid_ids, whole
from regard.layers.ngram_scores import NgramScores
from regard.layers.pooling import Pooling
from regard.models.configs.readers import ClassifierConfig, SpanFinderConfig, TaggerConfig
from regard.models.interfaces import Reader

_OVERLAP_DIM = 32  # hidden numbers between overlaps and logits
_NO_TEXT = "Nothing can be said of a text without tokens: leave it out."


class Classifier(nn.Module):
    """Logits of the classes from a text, or from two side by side (a cross-encoder).

    ``W pool(h_1 … h_n) + b``; with a pooler, ``W tanh(U pool(h_1 … h_n) + a) + b``. The model of
    Zhou et al. (2016, https://aclanthology.org/P16-2034) is a ``RecurrentReader`` with the pooling
    ``tanh_query``, that of Lin et al. (2017, https://arxiv.org/abs/1703.03130) one with
    ``structured``, that of Kim (2014) a ``ConvReader`` with ``maximum``; with ``query`` that is
    attention over convolutions. The scores of n-grams, where the config has them, are added where
    the model is used: in training the rest learns by itself.

    Args:
        config: Options.
        reader: The reader of the text: ``Encoder`` or one of ``readers``.
        num_classes: How many labels there are.
        num_aspects: How many aspects there are, for pooling by aspect.
        num_features: Numbers of the overlap of two texts, F.
        num_ngrams: How many n-grams have scores.

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
        num_features: int = 0,
        num_ngrams: int = 0,
    ) -> None:
        super().__init__()
        check_count("num_classes", num_classes)
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
        self.overlap = OverlapScore(num_features, num_classes) if num_features else None
        self.ngrams: NgramScores | None = None
        if config.ngram_scores:
            self.ngrams = NgramScores(num_ngrams, num_classes)

    def forward(
        self,
        ids: Int[Tensor, "B N"],
        lengths: Int[Tensor, " B"],
        *,
        aspects: Int[Tensor, " B"] | None = None,
        overlap: Float[Tensor, "B F"] | None = None,
        ngrams: Int[Tensor, "B M"] | None = None,
        ngram_values: Float[Tensor, "B M"] | None = None,
        return_penalty: bool = False,
        **reading: Tensor,
    ) -> Float[Tensor, "B K"] | tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
        """The logits.

        Args:
            ids: Token ids, padded on the right.
            lengths: How many of them are real.
            aspects: The aspect of each text, with pooling by aspect.
            overlap: Numbers of the words that both texts share, whose logits are added.
            ngrams: Ids of each text's n-grams, padded with 0, whose scores are added.
            ngram_values: Their TF-IDF.
            return_penalty: Whether to return the penalty of each text in the loss as well, which
                is zero but in training.
            reading: Further inputs of the reader: ``segments``, ``parts``.
        """
        ids, lengths = texts("ids", ids, lengths, least=1, cure=_NO_TEXT)
        states = self.reader(ids, lengths, **reading)
        pooled = self.pooling(states, lengths, aspects=aspects)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler(pooled))
        logits: Tensor = self.output(self.dropout(pooled))
        if self.overlap is not None and overlap is not None:
            logits = logits + self.overlap(overlap)
        if self.ngrams is not None and ngrams is not None and not self.training:
            logits = logits + self.ngrams(ngrams, ngram_values)
        if not return_penalty:
            return logits
        if not (self.training and self.config.penalty):
            return logits, states.new_zeros(states.shape[0])
        return logits, self.config.penalty * self.pooling.penalty(states, lengths)

    def divide_logits(self, temperature: float) -> None:
        """Divide all that is summed to logits by a temperature, in the weights."""
        scale = 1.0 if self.ngrams is None else float(self.ngrams.scale)
        self.scale_logits(network=1 / temperature, ngrams=scale / temperature)

    @torch.no_grad()
    def scale_logits(self, *, network: float, ngrams: float) -> None:
        """Multiply the network's logits by a factor, and set that of the scores of n-grams."""
        factors = [self.output.weight, self.output.bias]
        if self.overlap is not None:
            factors += [self.overlap.output.weight, self.overlap.output.bias]
        for factor in factors:
            factor.mul_(network)
        if self.ngrams is not None:
            self.ngrams.scale.fill_(ngrams)


class MultipleChoice(nn.Module):
    """Multiple choice: scores each answer, read together with its question.

    Args:
        config: Options.
        reader: The reader of question and answer side by side.

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
        """The logits of the answers, each read with its question.

        A length is 0 where a question has fewer answers, which can never be chosen. The penalty is
        the sum over each question's answers; ``reading`` has an axis of answers as well.
        """
        ids, lengths = rows_of_ids("ids", ids), whole("lengths", lengths)
        if not torch.compiler.is_compiling() and ids.shape[:2] != lengths.shape:
            raise ShapeError(
                f"lengths must be one for each answer, {tuple(ids.shape[:2])}; "
                f"got {tuple(lengths.shape)}."
            )
        texts("ids", ids.flatten(0, 1), lengths.flatten())
        flat = {name: tensor.flatten(0, 1) for name, tensor in reading.items()}
        scores, penalty = self.score(
            ids.flatten(0, 1), lengths.flatten().clamp(min=1), return_penalty=True, **flat
        )
        absent = lengths == 0
        logits: Tensor = scores.view(lengths.shape).masked_fill(absent, -torch.inf)
        if not return_penalty:
            return logits
        return logits, penalty.view(lengths.shape).masked_fill(absent, 0).sum(-1)

    def divide_logits(self, temperature: float) -> None:
        """Divide the logits by a temperature, in the weights."""
        self.score.divide_logits(temperature)


class Tagger(nn.Module):
    """A tag for each position.

    Args:
        config: Options.
        reader: The reader of the text: ``Encoder`` or one of ``readers``.
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
        check_count("num_tags", num_tags)
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
        positions: Int[Tensor, "B W"] | None = None,
        **reading: Tensor,
    ) -> Float[Tensor, "B W K"]:
        """Scores of each tag at each position, or each word.

        ``positions`` are those to tag, such as those of the words' first pieces; None is all.
        ``reading`` has further inputs of the reader: ``segments``, ``parts``.
        """
        ids, lengths = texts("ids", ids, lengths)
        states = self.reader(ids, lengths, **reading)
        if positions is not None:
            positions = valid_ids("positions", positions, ids.shape[1])
            states = states[torch.arange(states.shape[0], device=states.device)[:, None], positions]
        scores: Tensor = self.output(self.dropout(states))
        return scores

    def loss(
        self, scores: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, ""]:
        """Minus the log-probability of the tags, summed; of padding nothing."""
        if self.crf is not None:
            return -self.crf.log_prob(scores, tags, lengths).sum()
        real = real_positions(lengths, tags.shape[1])
        return F.cross_entropy(scores[real], tags[real], reduction="sum")

    def best(
        self, scores: Float[Tensor, "B N K"], lengths: Int[Tensor, " B"]
    ) -> Int[Tensor, "B N"]:
        """The likeliest tags; zero in padding."""
        if self.crf is not None:
            return self.crf.best(scores, lengths)
        real = real_positions(lengths, scores.shape[1])
        return scores.argmax(-1).masked_fill(~real, 0)


NO_ANSWER = 0  # the position of the first token, which is no word of the passage


@dataclass(frozen=True)
class AnswerSpans:
    """The best answers."""

    start: Int[Tensor, " B"]  # the first position of each
    end: Int[Tensor, " B"]  # the last position of each, itself included
    # The sum of the two logits; −inf where a text has no place for an answer.
    score: Float[Tensor, " B"]
    none: Float[Tensor, " B"]  # the score of there being no answer


class SpanFinder(nn.Module):
    """Start and end of an answer: a linear layer with two outputs.

    ``P(start = i) = softmax_i(S · h_i)``, the same for the end; an answer's score is the sum of its
    two logits, and that of no answer is those of the first token.

    Args:
        config: Options.
        reader: The reader of question and passage side by side.

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

        ``reading`` has further inputs of the reader: ``segments``, ``parts``.
        """
        ids, lengths = texts("ids", ids, lengths, least=1, cure=_NO_TEXT)
        logits = self.output(self.dropout(self.reader(ids, lengths, **reading)))
        is_real = real_positions(lengths, ids.shape[1])[..., None]
        start, end = logits.masked_fill(~is_real, -torch.inf).unbind(-1)
        return start, end

    @staticmethod
    def loss(
        start: Float[Tensor, "B N"],
        end: Float[Tensor, "B N"],
        starts: Int[Tensor, " B"],
        ends: Int[Tensor, " B"],
    ) -> Float[Tensor, ""]:
        """Minus the log-probability of both ends, their mean, summed over texts.

        The right ``ends`` are themselves part of the answers; both are 0 where there is no answer.
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
    """The answer with the largest sum of logits, for every text at once."""
    # Among N × max_length spans, so that long passages cost no N × N.
    check_count("max_length", max_length)
    starts = start.masked_fill(~allowed, -torch.inf)
    ends = end.masked_fill(~allowed, -torch.inf)
    ahead = F.pad(ends, (0, max_length - 1), value=-torch.inf).unfold(1, max_length, 1)
    best, step = ahead.max(dim=-1)  # of all ends within reach of each start
    score, first = (starts + best).max(dim=-1)
    last = first + step.gather(1, first[:, None]).squeeze(1)
    return AnswerSpans(first, last, score, start[:, NO_ANSWER] + end[:, NO_ANSWER])


class OverlapScore(nn.Module):
    """Logits from numbers that say how much two texts have in common."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(num_features, _OVERLAP_DIM)
        self.output = nn.Linear(_OVERLAP_DIM, num_classes)

    def forward(self, features: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch K"]:
        logits: Tensor = self.output(self.hidden(features).relu())
        return logits
