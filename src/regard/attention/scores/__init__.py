"""Scores: how well a query and a key match. A score of one's own is a class like these."""

from regard.attention.scores.additive import Additive
from regard.attention.scores.base import DotForm, Score
from regard.attention.scores.custom import Custom
from regard.attention.scores.dot import Bilinear, Cosine, Dot, ScaledDot
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
