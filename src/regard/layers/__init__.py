"""Modules that own weights; where they attend, they call the engine."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.layers.attention import (
        AdditiveAttention,
        AttentionPooling,
        BilinearAttention,
        DotAttention,
        KernelAttention,
        LocationAttention,
        ScoredAttention,
    )
    from regard.layers.block import BlockStack, FeedForward, TransformerBlock
    from regard.layers.convolution import GatedConvolution
    from regard.layers.crf import Crf
    from regard.layers.embedding import PartsEmbedding, TokenEmbedding
    from regard.layers.heads import Packing
    from regard.layers.multihead import MultiHeadAttention
    from regard.layers.pointer import CopyAttention, Pointer, identity, mix
    from regard.layers.pooling import Pooling
    from regard.layers.positions import (
        LearnedPositions,
        RelativePositions,
        RotaryPositions,
        ShawPositions,
        SinusoidalPositions,
        sinusoidal,
    )
    from regard.layers.recurrent import RecurrentCell, RecurrentEncoder
    from regard.layers.residual import Dropout, Residual, dropout

__all__ = [
    "AdditiveAttention",
    "AttentionPooling",
    "BilinearAttention",
    "BlockStack",
    "CopyAttention",
    "Crf",
    "DotAttention",
    "Dropout",
    "FeedForward",
    "GatedConvolution",
    "KernelAttention",
    "LearnedPositions",
    "LocationAttention",
    "MultiHeadAttention",
    "Packing",
    "PartsEmbedding",
    "Pointer",
    "Pooling",
    "RecurrentCell",
    "RecurrentEncoder",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "ScoredAttention",
    "ShawPositions",
    "SinusoidalPositions",
    "TokenEmbedding",
    "TransformerBlock",
    "dropout",
    "identity",
    "mix",
    "sinusoidal",
]

__getattr__ = _names(__name__, __file__)
