"""Settings of the models that read, of the heads on them, and of kernel regression."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from regard.checks import check_above_zero
from regard.config import JsonValue, newer
from regard.errors import SettingError
from regard.fields import Count, Natural, Positive, Share, Weight, at_least, at_most, check_fields
from regard.layers import PartsName, PoolingName
from regard.models.configs import LayersConfig, ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig(LayersConfig):
    """Sizes and options of an encoder; the defaults are a small BERT.

    Example:
        >>> from regard.config import build
        >>> build(EncoderConfig, {"model_dim": 128, "num_heads": 2}, where="model").ffn_dim
        1024
        >>> build(EncoderConfig, {"model_dim": 510}, where="model")
        Traceback (most recent call last):
        regard.errors.SettingError: [model] model_dim must be divisible by num_heads; got
        model_dim=510, num_heads=4.

    Attributes:
        norm: ``post`` as in the paper, ``pre`` for deep stacks without warm-up.
        norm_kind: ``layer`` as in the paper, or ``rms``.
        norm_eps: Added to variances by the norms.
        activation: ``gelu`` as in the paper, ``gelu_tanh`` (an approximation of it), ``relu`` or
            ``swiglu``.
        positions: ``learned`` as in the paper; or ``sinusoidal``, added to embeddings times √C as
            in Vaswani et al. (2017), or ``rotary``, which have no limit.
        max_length: Longest text, in tokens, that learned positions can take.
        num_segments: How many texts side by side can be told apart; 0 is not to.
        embedding_dim: Width of the embeddings, which a linear map turns into states, as in ALBERT
            (Lan et al., 2020, https://arxiv.org/abs/1909.11942, section 3.1); None is model_dim,
            without one.
        parts: A vector added to a word's embedding: ``none``, or one read from its parts by
            ``bag``, ``convolution`` or ``lstm``.
    """

    norm: Literal["post", "pre"] = "post"
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_eps: Positive = 1e-12
    activation: Literal["gelu", "gelu_tanh", "relu", "swiglu"] = "gelu"
    positions: Literal["learned", "sinusoidal", "rotary"] = "learned"
    max_length: Count = 512
    num_segments: Natural = 2
    embedding_dim: Count | None = None
    parts: PartsName = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class BagReaderConfig(ModelConfig):
    """Sizes of embeddings alone.

    Example:
        >>> from regard.models import BagReader
        >>> config = BagReaderConfig(embed_dim=100, parts="bag", parts_dim=28)
        >>> BagReader(config, vocab_size=11, parts_vocab=7).output_dim
        128

    Attributes:
        embed_dim: Width of the embeddings.
        dropout: Share dropped of them while training.
        parts: Further inputs of words: ``none``, or their parts read by ``bag``, ``convolution``
            or ``lstm``.
        parts_dim: Width of the vectors of parts.
    """

    embed_dim: Count = 128
    dropout: Share = 0.3
    parts: PartsName = "none"
    parts_dim: Annotated[int, at_least(2)] = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentReaderConfig(BagReaderConfig):
    """Sizes of a recurrence in both directions.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "classification", "model": {"type": "recurrent", "cell": "gru"}}
        >>> recipe_from_table(table).model.hidden_dim
        128
        >>> recipe_from_table({**table, "model": {"type": "recurrent", "cell": "lstn"}})
        Traceback (most recent call last):
        regard.errors.SettingError: model.cell must be one of gru, lstm, rnn; got 'lstn'.
        Did you mean 'lstm'?

    Attributes:
        dropout: Share dropped of embeddings, and between layers, while training.
        cell: ``rnn``, ``gru`` or ``lstm``.
        hidden_dim: Width of one direction's state.
        num_layers: Stacked layers.
    """

    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    hidden_dim: Count = 128
    num_layers: Count = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvReaderConfig(BagReaderConfig):
    """Sizes of convolutions side by side.

    Raises:
        SettingError: There is no width.

    Example:
        >>> from regard.models import ConvReader
        >>> ConvReader(ConvReaderConfig(channels=50, widths=(2, 3, 4)), vocab_size=11).output_dim
        150
        >>> ConvReaderConfig(widths=())
        Traceback (most recent call last):
        regard.errors.SettingError: widths must hold at least one; got none.

    Attributes:
        channels: Filters of each width.
        widths: How many words a filter sees; the middle one is the word itself, of an even number
            the one before the middle.
    """

    channels: Count = 100
    widths: tuple[Count, ...] = (1, 3, 5)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.widths:
            raise SettingError("widths must hold at least one; got none.")


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchReaderConfig(ModelConfig):
    """Sizes of the reader.

    Raises:
        SettingError: A similarity is chosen where nothing is compared.

    Example:
        >>> MatchReaderConfig(similarity="trilinear", compares=True).hidden_dim
        64
        >>> MatchReaderConfig(similarity="trilinear")
        Traceback (most recent call last):
        regard.errors.SettingError: similarity must be dot where compares is false; got 'trilinear'.
        Set compares to true.

    Attributes:
        embed_dim: Width of the embeddings.
        hidden_dim: Width of one direction's state.
        cell: ``rnn``, ``gru`` or ``lstm``.
        num_layers: Stacked recurrences over each text, whose outputs stand side by side; DrQA has
            three.
        compares: Whether the states of both texts are set side by side and read again, as in
            BiDAF; without it the reader is DrQA's, at half the cost.
        alignment: How the words of both texts match: by the ``dot`` product, as in DrQA, or by
            ``scaled_dot``, over √E, as runs from before there was the choice.
        similarity: How the states h and q that are compared match: by their ``dot`` product, or by
            BiDAF's ``trilinear``, ``w · [h; q; h ⊙ q]`` with learned weights.
        dropout: Share dropped of the inputs of each layer while training.
    """

    embed_dim: Count = 128
    hidden_dim: Count = 64
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    num_layers: Count = 1
    compares: bool = False
    alignment: Literal["dot", "scaled_dot"] = newer("dot", before="scaled_dot")
    similarity: Literal["dot", "trilinear"] = "dot"
    dropout: Share = 0.3

    def __post_init__(self) -> None:
        check_fields(self)
        if self.similarity != "dot" and not self.compares:
            raise SettingError(
                f"similarity must be dot where compares is false; got {self.similarity!r}. "
                "Set compares to true."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class EsimConfig(ModelConfig):
    """Sizes of the model.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "pair_matching", "model": {"type": "esim", "hidden_dim": 64}}
        >>> recipe_from_table(table).model
        EsimConfig(embed_dim=128, hidden_dim=64, dropout=0.3)

    Attributes:
        embed_dim: Width of the embeddings.
        hidden_dim: Width of one direction's state, and of the layer before the last.
        dropout: Share dropped before each layer while training.
    """

    embed_dim: Count = 128
    hidden_dim: Count = 128
    dropout: Share = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryNetworkConfig(ModelConfig):
    """Sizes of the model.

    Example:
        >>> from regard.config import as_saved, build
        >>> build(MemoryNetworkConfig, {"num_hops": 2}, where="model").counted_from
        'last'
        >>> as_saved(MemoryNetworkConfig, {"num_hops": 2})["counted_from"]  # of an older run
        'first'

    Attributes:
        model_dim: Width of memories and of the question, C.
        num_hops: How often the memory is looked at.
        max_sentences: Most sentences of a memory.
        encoding: How a sentence's words are added up (section 4.1): ``position`` tells their
            positions apart, in a ``bag`` a word matches another wherever both stand.
        counted_from: Where the positions of sentences are counted from (section 4.1): the ``last``
            sentence, as in the paper, so that one position is as far from the question in every
            text; or the ``first``, as in runs from before there was the choice.
        dropout: Share dropped of memories and question while training.
    """

    model_dim: Count = 128
    num_hops: Annotated[int, at_least(1), at_most(1000)] = 3
    max_sentences: Count = 64
    encoding: Literal["position", "bag"] = "position"
    counted_from: Literal["last", "first"] = newer("last", before="first")
    dropout: Share = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class VisionTransformerConfig(LayersConfig):
    """Sizes and options of a picture's encoder; the defaults suit pictures of 8 × 8 pixels.

    Example:
        >>> from regard.models import VisionTransformer
        >>> model = VisionTransformer(VisionTransformerConfig(patch=4), size=(8, 12), num_classes=3)
        >>> model.patches.grid
        (2, 3)

    Attributes:
        patch: Height and width of the squares that are read as one token each, in pixels.
        pooling: The classified vector: the state of a class token that stands ``first``, as in
            the paper, or the ``mean`` of the patches' states.
    """

    model_dim: Count = 64
    ffn_dim: Count = 128
    patch: Count = 2
    pooling: Literal["first", "mean"] = "first"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig(ModelConfig):
    """Options of the head.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe = recipe_from_table({"task": "classification", "head": {"pooling": "query"}})
        >>> recipe.head.pooling, recipe.head.dropout
        ('query', 0.2)

    Attributes:
        pooling: How a text becomes one vector: its ``first`` state, the ``mean``, the ``maximum``,
            or the context of a query: a learned one (``query``; as in Zhou et al., 2016, with tanh
            before and after: ``tanh_query``), several (``structured``, as in Lin et al., 2017), one
            made of the text (``state``), or that of the text's ``aspect``.
        num_hops: How many queries ``structured`` has; the vector is as many times as wide. The
            paper has 30.
        attention_dim: Width of the vectors that they look at; 350 in the paper.
        penalty: The weight of ``‖A Aᵀ − I‖²`` of its weights in the loss, so that queries look at
            different words; 1 in the paper. Too much of it, and nothing else is learned.
        pooler: Whether the text's vector goes through a linear layer and tanh before the last
            layer, as BERT's does (Devlin et al., 2019); a pretrained model may come with
            it.
        ngram_scores: Whether scores are added that the n-grams of the whole text have for each
            label: words and their pairs, and characters, by logistic regression on their TF-IDF. It
            is fitted before the training, and weighed by the validation text after it.
        dropout: Share dropped of that vector while training.
    """

    pooling: PoolingName = "mean"
    num_hops: Count = 5
    attention_dim: Count = 128
    penalty: Weight = 0.1
    pooler: bool = False
    ngram_scores: bool = False
    dropout: Share = 0.2

    retired: ClassVar[Mapping[str, JsonValue]] = {"ngram_dropout": 0.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanFinderConfig(ModelConfig):
    """Options of the head.

    Example:
        >>> from regard.config import build
        >>> build(SpanFinderConfig, {"dropout": 1.5}, where="head")
        Traceback (most recent call last):
        regard.errors.SettingError: head.dropout must be at least 0 and below 1; got 1.5.

    Attributes:
        dropout: Share dropped of the states while training.
    """

    dropout: Share = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggerConfig(ModelConfig):
    """Options of the head.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe_from_table({"task": "tagging", "head": {"crf": True}}).head
        TaggerConfig(crf=True, dropout=0.3)

    Attributes:
        crf: Whether tags are scored together with their neighbours, instead of each by itself.
        dropout: Share dropped of the states while training.
    """

    crf: bool = False
    dropout: Share = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelRegressionConfig(ModelConfig):
    """Kernel and bandwidth of kernel regression.

    Example:
        >>> import torch
        >>> from regard.models import KernelRegression
        >>> positions, seen = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]])
        >>> configs = [KernelRegressionConfig(bandwidth=each) for each in (0.1, float("inf"))]
        >>> [KernelRegression(each)(positions[:1], positions, seen).item() for each in configs]
        [2.0, 3.0]

    Attributes:
        kernel: ``gaussian``, ``laplace``, ``epanechnikov`` or ``box``.
        bandwidth: How far "near" reaches, at first. Infinite: every key counts the same, whatever
            the query, which is average pooling.
        per_dimension: Whether each dimension has a bandwidth of its own.
        is_learned: Whether the bandwidth is trained. That of a box has no gradient.
    """

    kernel: Literal["gaussian", "laplace", "epanechnikov", "box"] = "gaussian"
    bandwidth: Annotated[float, check_above_zero] = 1.0
    per_dimension: bool = False
    is_learned: bool = False
