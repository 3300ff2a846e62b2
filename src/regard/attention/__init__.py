"""The engine: attention of any score and mask, exact, with gradients."""

from regard.attention import testing
from regard.attention.attend import attend
from regard.attention.backends.base import Backend, Offer, Refusal
from regard.attention.biases import PositionBias, alibi, relative, shaw
from regard.attention.call.choice import register_backend
from regard.attention.call.plan import Plan, explain
from regard.attention.inspect.head_scores import HeadScores, head_scores
from regard.attention.inspect.summarize import summarize
from regard.attention.inspect.summary import Summary
from regard.attention.inspect.weights import columns, rows, weights
from regard.attention.key_value_cache import KeyValueCache
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
from regard.attention.masks.parse import register_mask
from regard.attention.observing import AttentionCall, at, observe
from regard.attention.rollout import rollout
from regard.attention.sampling import SampledKey, sample_key
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
from regard.attention.scores.content import register_score
from regard.attention.weighting import Entmax15, Hard, Softmax, Sparsemax, Weighting, masked_softmax

__all__ = [
    "Additive",
    "AttentionCall",
    "Backend",
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
    "HeadScores",
    "KeyValueCache",
    "Laplace",
    "Mask",
    "Offer",
    "Plan",
    "PositionBias",
    "Refusal",
    "SampledKey",
    "ScaledDot",
    "Score",
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
    "head_scores",
    "lengths",
    "masked_softmax",
    "observe",
    "parse_mask",
    "prefix",
    "register_backend",
    "register_mask",
    "register_score",
    "relative",
    "rollout",
    "rows",
    "sample_key",
    "shaw",
    "summarize",
    "testing",
    "weights",
    "where",
    "window",
]
