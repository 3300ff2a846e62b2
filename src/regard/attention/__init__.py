"""The engine: attention of any score and mask, exact, with gradients."""

from regard.attention import testing
from regard.attention.attend import attend, explain, weights, weights_seen
from regard.attention.biases import PositionBias, alibi, relative, shaw
from regard.attention.cache import KeyValueCache
from regard.attention.inspect.rollout import rollout
from regard.attention.inspect.rows import columns, rows, rows_seen
from regard.attention.inspect.summarizing import summarize, summarize_seen
from regard.attention.inspect.summary import Summary
from regard.attention.inspect.transposing import transposed
from regard.attention.masks import (
    BoundMask,
    Cover,
    Mask,
    causal,
    dense,
    documents,
    lengths,
    parse_mask,
    prefix,
    where,
    window,
)
from regard.attention.observing import Seen, at, observe
from regard.attention.plan import Plan
from regard.attention.sampling import Picked, pick
from regard.attention.scores import (
    Additive,
    Bilinear,
    Box,
    Cosine,
    Custom,
    Dot,
    DotForm,
    Epanechnikov,
    Gaussian,
    Laplace,
    ScaledDot,
    Score,
    StudentT,
)
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
