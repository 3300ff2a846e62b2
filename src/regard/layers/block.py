"""Self-attention and feed-forward, each with its residual: one layer of an encoder or a decoder."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.biases import PositionBias
from regard.attention.cache import KeyValueCache
from regard.attention.masks.base import Mask
from regard.attention.observing import at
from regard.choices import check_choice
from regard.layers.feedforward import FeedForward
from regard.layers.multihead import MultiHeadAttention
from regard.layers.packing import Packing
from regard.layers.positions import RotaryPositions
from regard.layers.residual import NormOrder, Residual


class SelfAttentionBlock(nn.Module):
    """One layer over its own states: Vaswani et al. (2017), section 3.1, the encoder's.

    Under a causal mask it is the layer of a decoder that has nothing else to look at (Radford et
    al., 2018).

    Args:
        kind: What an observer is told: "encoder" or "decoder".
        layer: Which layer it is, from 0; for observers as well.
        model_dim: Width of the states, C.
        num_heads: Attention heads, H.
        ffn_dim: Width inside the feed-forward sublayer, F.
        num_key_heads: Heads of keys and values, G; None is H.
        dropout: Share dropped of each sublayer's output while training.
        attention_dropout: Share of the attention weights dropped while training.
        norm: ``post`` or ``pre``.
        norm_kind: ``layer`` or ``rms``.
        norm_eps: What the norms add to a variance.
        activation: Of the feed-forward sublayer.
        rotary: Turns queries and keys by their places.

    Raises:
        SettingError: A name is unknown, or a number out of range.
    """

    def __init__(
        self,
        kind: str,
        layer: int,
        *,
        model_dim: int,
        num_heads: int,
        ffn_dim: int,
        num_key_heads: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: NormOrder = "post",
        norm_kind: Literal["layer", "rms"] = "layer",
        norm_eps: float = 1e-5,
        activation: str = "gelu",
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        check_choice("kind", kind, Literal["encoder", "decoder"])
        check_choice("norm_kind", norm_kind, Literal["layer", "rms"])
        self.place = (kind, layer)
        self.attend = MultiHeadAttention(
            model_dim,
            num_heads,
            num_key_heads=num_key_heads,
            dropout=attention_dropout,
            rotary=rotary,
        )
        self.feed = FeedForward(model_dim, ffn_dim, activation=activation)
        self.attend_residual = Residual(model_dim, dropout=dropout, norm=norm, kind=norm_kind)
        self.feed_residual = Residual(model_dim, dropout=dropout, norm=norm, kind=norm_kind)
        for residual in (self.attend_residual, self.feed_residual):
            assert isinstance(residual.norm, nn.LayerNorm | nn.RMSNorm)
            residual.norm.eps = norm_eps

    def forward(
        self,
        states: Float[Tensor, "*positions C"],
        *,
        mask: Mask | None = None,
        bias: PositionBias | None = None,
        cache: KeyValueCache | None = None,
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "*positions C"], KeyValueCache | None]:
        """The states one layer further on, and the cache that includes them, if there was one.

        Args:
            states: (B, N, C), or (R, C) with a packing.
            mask: Which keys a state may look at; with a cache, keys count from its beginning.
            bias: Added to the scores, such as ``alibi()``.
            cache: Keys and values of earlier positions.
            packing: Where the positions of packed states stand.
        """
        kept: KeyValueCache | None = None

        def look(inputs: Tensor) -> Tensor:
            nonlocal kept
            mixed: Tensor
            with at(*self.place):
                mixed, kept = self.attend(
                    inputs, mask=mask, bias=bias, cache=cache, packing=packing
                )
            return mixed

        states = self.attend_residual(states, look)
        return self.feed_residual(states, self.feed), kept
