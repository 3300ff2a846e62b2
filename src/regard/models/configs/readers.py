"""Settings of the models that read: a text, two of them, sentences, a picture."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.checks import check_divides
from regard.config import newer
from regard.errors import SettingError
from regard.fields import Count, Natural, Positive, Share, at_least, at_most, check_fields
from regard.layers import PartsName
from regard.models.configs import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig(ModelConfig):
    """Sizes and options of an encoder; the defaults are a small BERT.

    Raises:
        SettingError: A value is out of range, or num_heads does not divide model_dim.

    Example:
        >>> from regard.config import build
        >>> build(EncoderConfig, {"model_dim": 128, "num_heads": 2}, where="model").ffn_dim
        1024
        >>> build(EncoderConfig, {"model_dim": 510}, where="model")
        Traceback (most recent call last):
        regard.errors.SettingError: [model] model_dim must be divisible by num_heads; got
        model_dim=510, num_heads=4.

    Attributes:
        model_dim: Width of every state, C.
        num_heads: Attention heads per layer, H; divides model_dim.
        num_layers: How many layers.
        ffn_dim: Width inside the feed-forward sublayer, F.
        dropout: Share dropped of embeddings and of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
        norm: ``post`` as in the paper, ``pre`` for deep stacks without warm-up.
        norm_kind: ``layer`` as in the paper, or ``rms``.
        norm_eps: What the norms add to a variance.
        activation: ``gelu`` as in the paper, ``gelu_tanh`` (an approximation of it), ``relu`` or
            ``swiglu``.
        positions: ``learned`` as in the paper; or ``sinusoidal``, added to embeddings times √C as
            in Vaswani et al. (2017), or ``rotary``, which have no limit.
        max_length: Longest text, in tokens, that learned positions can take.
        num_segments: How many texts side by side can be told apart; 0 is not to.
        parts: What is added to a word's embedding: ``none``, or what is read from its parts by
            ``bag``, ``convolution`` or ``lstm``.
    """

    model_dim: Count = 256
    num_heads: Count = 4
    num_layers: Count = 4
    ffn_dim: Count = 1024
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    norm: Literal["post", "pre"] = "post"
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_eps: Positive = 1e-12
    activation: Literal["gelu", "gelu_tanh", "relu", "swiglu"] = "gelu"
    positions: Literal["learned", "sinusoidal", "rotary"] = "learned"
    max_length: Count = 512
    num_segments: Natural = 2
    parts: PartsName = "none"

    def __post_init__(self) -> None:
        check_fields(self)
        check_divides("num_heads", self.num_heads, "model_dim", self.model_dim)


@dataclass(frozen=True, kw_only=True, slots=True)
class BagReaderConfig(ModelConfig):
    """Sizes of embeddings alone.

    Raises:
        SettingError: A value is none of the choices or out of range.

    Example:
        >>> from regard.models import BagReader
        >>> config = BagReaderConfig(embed_dim=100, parts="bag", parts_dim=28)
        >>> BagReader(config, vocab_size=11, parts_vocab=7).output_dim
        128

    Attributes:
        embed_dim: Width of the embeddings.
        dropout: Share dropped of them while training.
        parts: What words are also read from: ``none``, or their parts by ``bag``, ``convolution``
            or ``lstm``.
        parts_dim: Width of what is read from the parts.
    """

    embed_dim: Count = 128
    dropout: Share = 0.3
    parts: PartsName = "none"
    parts_dim: Annotated[int, at_least(2)] = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentReaderConfig(BagReaderConfig):
    """Sizes of a recurrence in both directions.

    Raises:
        SettingError: A value is none of the choices or out of range.

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
        embed_dim: Width of the embeddings.
        dropout: Share dropped of them, and between layers, while training.
        parts: What words are also read from; see ``BagReaderConfig``.
        parts_dim: Width of what is read from the parts.
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
        SettingError: A value is none of the choices or out of range, or there is no width.

    Example:
        >>> from regard.models import ConvReader
        >>> ConvReader(ConvReaderConfig(channels=50, widths=(2, 3, 4)), vocab_size=11).output_dim
        150
        >>> ConvReaderConfig(widths=())
        Traceback (most recent call last):
        regard.errors.SettingError: widths must hold at least one; got none.

    Attributes:
        embed_dim: Width of the embeddings.
        dropout: Share dropped of them while training.
        parts: What words are also read from; see ``BagReaderConfig``.
        parts_dim: Width of what is read from the parts.
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
        SettingError: A value is none of the choices or out of range, or a similarity is chosen
            where nothing is compared.

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
        compares: Whether what has been read of both texts is set side by side and read again, as in
            BiDAF; without it the reader is DrQA's, at half the cost.
        alignment: How the words of both texts match: by the ``dot`` product, as in DrQA, or by
            ``scaled_dot``, over √E, as runs from before there was the choice.
        similarity: How the states h and q that are compared match: by their ``dot`` product, or by
            BiDAF's ``trilinear``, ``w · [h; q; h ⊙ q]`` with learned weights.
        dropout: Share dropped of what each layer reads while training.
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

    Raises:
        SettingError: A value is of another type or out of range.

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

    Raises:
        SettingError: A value is none of the choices or out of range.

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
        encoding: What a sentence's words add up to (section 4.1): ``position`` tells their places
            apart, in a ``bag`` a word matches another wherever both stand.
        counted_from: Where the places of sentences are counted from (section 4.1): the ``last``
            sentence, as in the paper, so that the same place is as far from the question in every
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
class VisionTransformerConfig(ModelConfig):
    """Sizes and options of a picture's encoder; the defaults suit pictures of 8 × 8 pixels.

    Raises:
        SettingError: A value is none of the choices or out of range, or num_heads does not divide
            model_dim.

    Example:
        >>> from regard.models import VisionTransformer
        >>> model = VisionTransformer(VisionTransformerConfig(patch=4), size=(8, 12), num_classes=3)
        >>> model.patches.grid
        (2, 3)

    Attributes:
        patch: Height and width of the squares that are read as one token each, in pixels.
        model_dim: Width of every state, C.
        num_heads: Attention heads per layer, H; divides model_dim.
        num_layers: How many layers.
        ffn_dim: Width inside the feed-forward sublayer, F.
        dropout: Share dropped of embeddings and of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
        pooling: What the label is told by: the state of a class token that stands ``first``, as in
            the paper, or the ``mean`` of the patches' states.
    """

    patch: Count = 2
    model_dim: Count = 64
    num_heads: Count = 4
    num_layers: Count = 4
    ffn_dim: Count = 128
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    pooling: Literal["first", "mean"] = "first"

    def __post_init__(self) -> None:
        check_fields(self)
        check_divides("num_heads", self.num_heads, "model_dim", self.model_dim)
