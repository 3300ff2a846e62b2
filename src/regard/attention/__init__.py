"""The engine: attention of any score and mask, exact, with gradients."""

from regard.attention.attend import attend, explain, weights
from regard.attention.cache import KeyValueCache
from regard.attention.grid import Cover
from regard.attention.kernels import Box, Epanechnikov, Gaussian, Laplace, StudentT
from regard.attention.mask import BoundMask, Mask, dense
from regard.attention.masks import causal, documents, lengths, prefix, where, window
from regard.attention.observing import Seen, at, observe
from regard.attention.plan import Plan
from regard.attention.scores import (
    Additive,
    Bilinear,
    Cosine,
    Custom,
    Dot,
    DotForm,
    ScaledDot,
    Score,
)
from regard.attention.weighting import Softmax, Weighting

__all__ = [
    "Additive",
    "Bilinear",
    "BoundMask",
    "Box",
    "Cosine",
    "Cover",
    "Custom",
    "Dot",
    "DotForm",
    "Epanechnikov",
    "Gaussian",
    "KeyValueCache",
    "Laplace",
    "Mask",
    "Plan",
    "ScaledDot",
    "Score",
    "Seen",
    "Softmax",
    "StudentT",
    "Weighting",
    "at",
    "attend",
    "causal",
    "dense",
    "documents",
    "explain",
    "lengths",
    "observe",
    "prefix",
    "weights",
    "where",
    "window",
]
