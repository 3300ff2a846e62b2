"""Settings of the architectures, without torch, so that recipes are checked in no time."""

from dataclasses import dataclass

from regard.checks import check_divides
from regard.fields import Count, Share, check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Settings whose types, choices and ranges are checked when they are made.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.
    """

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayersConfig(ModelConfig):
    """Sizes of a stack of a Transformer's layers.

    Raises:
        SettingError: num_heads does not divide model_dim.

    Attributes:
        model_dim: Width of every state, C.
        num_heads: Attention heads per layer, H; divides model_dim.
        num_layers: How many layers.
        ffn_dim: Width inside the feed-forward sublayer, F.
        dropout: Share dropped of embeddings and of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
    """

    model_dim: Count = 256
    num_heads: Count = 4
    num_layers: Count = 4
    ffn_dim: Count = 1024
    dropout: Share = 0.1
    attention_dropout: Share = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        check_divides("num_heads", self.num_heads, "model_dim", self.model_dim)
