"""Attention on PyTorch: use it, train it, look inside it.

Names are looked up when they are first used, so that ``import regard`` alone is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

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
        KeyValueCache,
        Laplace,
        Picked,
        Plan,
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
        lengths,
        observe,
        pick,
        prefix,
        relative,
        rollout,
        rows,
        shaw,
        summarize,
        summarize_seen,
        testing,
        transposed,
        weights,
        where,
        window,
    )
    from regard.interop import use

# Where each public name lives.
_HOMES = {
    "Additive": "regard.attention",
    "Bilinear": "regard.attention",
    "Box": "regard.attention",
    "Cosine": "regard.attention",
    "Custom": "regard.attention",
    "Dot": "regard.attention",
    "Entmax15": "regard.attention",
    "Epanechnikov": "regard.attention",
    "Gaussian": "regard.attention",
    "Hard": "regard.attention",
    "KeyValueCache": "regard.attention",
    "Laplace": "regard.attention",
    "Picked": "regard.attention",
    "Plan": "regard.attention",
    "ScaledDot": "regard.attention",
    "Softmax": "regard.attention",
    "Sparsemax": "regard.attention",
    "StudentT": "regard.attention",
    "Summary": "regard.attention",
    "alibi": "regard.attention",
    "at": "regard.attention",
    "attend": "regard.attention",
    "causal": "regard.attention",
    "columns": "regard.attention",
    "dense": "regard.attention",
    "documents": "regard.attention",
    "explain": "regard.attention",
    "lengths": "regard.attention",
    "observe": "regard.attention",
    "pick": "regard.attention",
    "prefix": "regard.attention",
    "relative": "regard.attention",
    "rollout": "regard.attention",
    "rows": "regard.attention",
    "shaw": "regard.attention",
    "summarize": "regard.attention",
    "summarize_seen": "regard.attention",
    "testing": "regard.attention",
    "transposed": "regard.attention",
    "use": "regard.interop",
    "weights": "regard.attention",
    "where": "regard.attention",
    "window": "regard.attention",
}

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
    "KeyValueCache",
    "Laplace",
    "Picked",
    "Plan",
    "ScaledDot",
    "Softmax",
    "Sparsemax",
    "StudentT",
    "Summary",
    "alibi",
    "at",
    "attend",
    "causal",
    "columns",
    "dense",
    "documents",
    "explain",
    "lengths",
    "observe",
    "pick",
    "prefix",
    "relative",
    "rollout",
    "rows",
    "shaw",
    "summarize",
    "summarize_seen",
    "testing",
    "transposed",
    "use",
    "weights",
    "where",
    "window",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
