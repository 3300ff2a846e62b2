"""Modules that own weights; where they attend, they call the engine."""

from typing import TYPE_CHECKING, Literal

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.layers.attention import AdditiveAttention as AdditiveAttention
    from regard.layers.attention import BilinearAttention as BilinearAttention
    from regard.layers.attention import DotAttention as DotAttention
    from regard.layers.attention import LocationAttention as LocationAttention
    from regard.layers.attention import ScoredAttention as ScoredAttention
    from regard.layers.block import BlockStack as BlockStack
    from regard.layers.block import FeedForward as FeedForward
    from regard.layers.block import TransformerBlock as TransformerBlock
    from regard.layers.crf import Crf as Crf
    from regard.layers.embedding import TokenEmbedding as TokenEmbedding
    from regard.layers.multihead import MultiHeadAttention as MultiHeadAttention
    from regard.layers.pooling import Pooling as Pooling
    from regard.layers.positions import LearnedPositions as LearnedPositions
    from regard.layers.positions import RelativePositions as RelativePositions
    from regard.layers.positions import RotaryPositions as RotaryPositions
    from regard.layers.positions import ShawPositions as ShawPositions
    from regard.layers.positions import SinusoidalPositions as SinusoidalPositions
    from regard.layers.positions import sinusoidal as sinusoidal
    from regard.layers.recurrent import RecurrentEncoder as RecurrentEncoder
    from regard.layers.residual import Dropout as Dropout
    from regard.layers.residual import Residual as Residual

# Names that settings choose from; here, as no torch is imported with them.
NormKind = Literal["layer", "rms", "batch"]
PartsName = Literal["none", "bag", "convolution", "lstm"]
PoolingName = Literal[
    "first", "mean", "maximum", "query", "tanh_query", "structured", "state", "aspect"
]

__getattr__ = _names(__name__, __file__)
