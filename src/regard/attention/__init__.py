"""The engine: attention of any score and mask, exact, with gradients."""

from regard.attention import testing
from regard.attention.attend import attend, explain, weights, weights_seen
from regard.attention.biases import PositionBias, alibi, relative, shaw
from regard.attention.bound import BoundMask
from regard.attention.cache import KeyValueCache
from regard.attention.exact import columns, rows, rows_seen
from regard.attention.expressions import parse_mask
from regard.attention.grid import Cover
from regard.attention.kernels import Box, Epanechnikov, Gaussian, Laplace, StudentT
from regard.attention.mask import Mask, dense
from regard.attention.masks import causal, documents, lengths, prefix, where, window
from regard.attention.observing import Seen, at, observe
from regard.attention.pick import Picked, pick
from regard.attention.plan import Plan
from regard.attention.rollout import rollout
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
from regard.attention.summarizing import summarize, summarize_seen
from regard.attention.summary import Summary
from regard.attention.transposing import transposed
from regard.attention.weighting import Entmax15, Hard, Softmax, Sparsemax, Weighting, masked_softmax

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
    "Entmax15",
    "Epanechnikov",
    "Gaussian",
    "Hard",
    "KeyValueCache",
    "Laplace",
    "Mask",
    "Picked",
    "Plan",
    "PositionBias",
    "ScaledDot",
    "Score",
    "Seen",
    "Softmax",
    "Sparsemax",
    "StudentT",
    "Summary",
    "Weighting",
    "alibi",
    "at",
    "attend",
    "causal",
    "columns",
    "dense",
    "documents",
    "explain",
    "lengths",
    "masked_softmax",
    "observe",
    "parse_mask",
    "pick",
    "prefix",
    "relative",
    "rollout",
    "rows",
    "rows_seen",
    "shaw",
    "summarize",
    "summarize_seen",
    "testing",
    "transposed",
    "weights",
    "weights_seen",
    "where",
    "window",
]
