"""Settings of the models that continue a text."""

from dataclasses import dataclass
from typing import Literal

from regard.checks import check_divides
from regard.config import newer
from regard.errors import SettingError
from regard.fields import Count, Positive, Share, check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderConfig:
    """Sizes and options of a decoder-only language model.

    Raises:
        SettingError: A value is none of the choices or out of range, or num_heads does not divide
            model_dim, or num_key_heads not num_heads.

    Example:
        >>> from regard.models import Decoder
        >>> sizes = {"model_dim": 8, "num_heads": 2, "num_layers": 1, "ffn_dim": 16}
        >>> configs = [DecoderConfig(**sizes, positions=each) for each in ("learned", "rotary")]
        >>> [Decoder(config, vocab_size=11).max_length for config in configs]
        [1024, None]
        >>> DecoderConfig(num_heads=4, num_key_heads=3)
        Traceback (most recent call last):
        regard.errors.SettingError: num_heads must be divisible by num_key_heads; got num_heads=4,
        num_key_heads=3.

    Attributes:
        model_dim: Width of every state, C.
        num_heads: Attention heads per layer, H; divides model_dim.
        num_key_heads: Heads of keys and values; divides num_heads. None is num_heads.
        num_layers: How many layers.
        ffn_dim: Width inside the feed-forward sublayer, F.
        dropout: Share dropped of embeddings and of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
        norm: ``pre`` as in GPT-2, or ``post``.
        norm_kind: ``layer`` as in the paper, or ``rms``.
        norm_eps: What the norms add to a variance.
        activation: ``gelu``, ``gelu_tanh`` (as GPT-2 approximates it), ``relu`` or ``swiglu``.
        positions: ``learned``; or ``sinusoidal``, added to embeddings times √C as in Vaswani et al.
            (2017), ``rotary`` or ``alibi``, which have no limit.
        max_length: Longest text, in tokens, that learned positions can take.
        window: How many tokens back a layer sees; None is all of them. The states still reach
            further, a window a layer.
        tie_embeddings: Whether the last layer is the embeddings' table.
    """

    model_dim: Count = 256
    num_heads: Count = 4
    num_key_heads: Count | None = None
    num_layers: Count = 4
    ffn_dim: Count = 1024
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    norm: Literal["pre", "post"] = "pre"
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_eps: Positive = 1e-5
    activation: Literal["gelu", "gelu_tanh", "relu", "swiglu"] = "gelu"
    positions: Literal["learned", "sinusoidal", "rotary", "alibi"] = "learned"
    max_length: Count = 1024
    window: Count | None = None
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        check_divides("num_heads", self.num_heads, "model_dim", self.model_dim)
        if self.num_key_heads is not None:
            check_divides("num_key_heads", self.num_key_heads, "num_heads", self.num_heads)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentLmConfig:
    """Sizes and options of a recurrent language model.

    Raises:
        SettingError: A value is out of range, or φ is chosen of a cell that has its own.

    Example:
        >>> RecurrentLmConfig(cell="rnn", activation="relu").hidden_dim
        256
        >>> RecurrentLmConfig(cell="gru", activation="relu")
        Traceback (most recent call last):
        regard.errors.SettingError: activation must be tanh where cell is gru; got 'relu'.
        Set cell = 'rnn' to choose.

    Attributes:
        cell: ``rnn``, ``gru`` or ``lstm``.
        activation: φ of an ``rnn``: ``tanh``, or ``relu``.
        embed_dim: Width of the embeddings.
        hidden_dim: Width of a layer's state.
        num_layers: Stacked layers.
        dropout: Share dropped of embeddings, between layers and before the last layer.
        tie_embeddings: Whether the last layer is the embeddings' table, behind a linear map where
            the two widths differ.
        output_bias: Whether the logits have a bias, b_q.
    """

    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    activation: Literal["tanh", "relu"] = "tanh"
    embed_dim: Count = 256
    hidden_dim: Count = 256
    num_layers: Count = 1
    dropout: Share = 0.2
    tie_embeddings: bool = True
    output_bias: bool = newer(True, before=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.activation != "tanh" and self.cell != "rnn":
            raise SettingError(
                f"activation must be tanh where cell is {self.cell}; got {self.activation!r}. "
                "Set cell = 'rnn' to choose."
            )
