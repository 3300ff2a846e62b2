"""Scores: how well a query and a key match. A score of one's own is a class like these."""

from regard.attention.scores.base import Custom, DotForm, Score
from regard.attention.scores.content import Additive, Bilinear, Cosine, Dot, ScaledDot
from regard.attention.scores.kernels import Box, Epanechnikov, Gaussian, Laplace, StudentT
from regard.choices import choose

__all__ = [
    "Additive",
    "Bilinear",
    "Box",
    "Cosine",
    "Custom",
    "Dot",
    "DotForm",
    "Epanechnikov",
    "Gaussian",
    "Laplace",
    "ScaledDot",
    "Score",
    "StudentT",
]

# The scores that settings may name.
SCORES: dict[str, type[Score]] = {"additive": Additive, "dot": Dot, "scaled_dot": ScaledDot}


def make_score(name: str, heads: int, dim: int) -> Score:
    """The score of a name for H heads of D numbers, with parameters of its own if it learns any.

    Raises:
        SettingError: There is no score of this name.

    Example:
        >>> make_score("additive", 2, 3).w.shape
        torch.Size([2, 3])
    """
    return choose("score", name, SCORES).for_heads(heads, dim)


def register_score(name: str, kind: type[Score]) -> None:
    """Let the settings of models, such as ``model.score`` of a recipe, name a score of one's own.

    Args:
        name: What it is called; a score of this name is replaced.
        kind: Its class, whose ``for_heads`` makes it.

    Example:
        >>> from regard.attention import Cosine
        >>> register_score("cosine", Cosine)
        >>> type(make_score("cosine", 2, 3)).__name__
        'Cosine'
        >>> from regard.models import TransformerConfig
        >>> TransformerConfig(score="cosine").score
        'cosine'
        >>> del SCORES["cosine"]
    """
    SCORES[name] = kind
