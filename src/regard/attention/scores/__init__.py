"""Scores: how well a query and a key match. A score of one's own is a class like these."""

from regard.attention.scores.base import Custom, DotForm, Score
from regard.attention.scores.content import Additive, Bilinear, Cosine, Dot, ScaledDot
from regard.attention.scores.kernels import Box, Epanechnikov, Gaussian, Laplace, StudentT

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
