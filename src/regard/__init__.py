"""Attention on PyTorch: use it, train it, look inside it.

Names are looked up when they are first used, so that ``import regard`` alone is quick.
"""

from typing import TYPE_CHECKING

from regard.lazy import names as _names
from regard.version import __version__ as __version__

if TYPE_CHECKING:
    from regard.attention import (
        Additive,
        Bilinear,
        Box,
        Cosine,
        Custom,
        Dot,
        Entmax15,
        Epanechnikov,
        Gaussian,
        Hard,
        HeadScores,
        KeyValueCache,
        Laplace,
        Plan,
        SampledKey,
        ScaledDot,
        Softmax,
        Sparsemax,
        StudentT,
        Summary,
        alibi,
        at,
        attend,
        causal,
        columns,
        dense,
        documents,
        explain,
        head_scores,
        lengths,
        masked_softmax,
        observe,
        parse_mask,
        prefix,
        relative,
        rollout,
        rows,
        sample_key,
        shaw,
        summarize,
        summarize_seen,
        testing,
        transposed,
        weights,
        where,
        window,
    )
    from regard.inference.predictor import load
    from regard.interop import look, use
    from regard.interop.attribute import attribute
    from regard.interop.edit import edit
    from regard.interop.faithfulness import faithfulness
    from regard.interop.patching import activations, patch
    from regard.interop.torch_functions import mark_weights
    from regard.interop.watch import watch
    from regard.training.start import train
    from regard.viewer import show

__all__ = [
    "Additive",
    "Bilinear",
    "Box",
    "Cosine",
    "Custom",
    "Dot",
    "Entmax15",
    "Epanechnikov",
    "Gaussian",
    "Hard",
    "HeadScores",
    "KeyValueCache",
    "Laplace",
    "Plan",
    "SampledKey",
    "ScaledDot",
    "Softmax",
    "Sparsemax",
    "StudentT",
    "Summary",
    "activations",
    "alibi",
    "at",
    "attend",
    "attribute",
    "causal",
    "columns",
    "dense",
    "documents",
    "edit",
    "explain",
    "faithfulness",
    "head_scores",
    "lengths",
    "load",
    "look",
    "mark_weights",
    "masked_softmax",
    "observe",
    "parse_mask",
    "patch",
    "prefix",
    "relative",
    "rollout",
    "rows",
    "sample_key",
    "shaw",
    "show",
    "summarize",
    "summarize_seen",
    "testing",
    "train",
    "transposed",
    "use",
    "watch",
    "weights",
    "where",
    "window",
]


__getattr__ = _names(__name__, __file__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
