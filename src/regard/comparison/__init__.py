"""Architectures, gradients, scores, positions and norms side by side, measured."""

from regard.comparison.architectures import Architectures, architectures
from regard.comparison.gradients import Gradients, gradients
from regard.comparison.norms import Norms, norms
from regard.comparison.page import page
from regard.comparison.positions import Positions, positions
from regard.comparison.scores import Scores, scores

__all__ = [
    "Architectures",
    "Gradients",
    "Norms",
    "Positions",
    "Scores",
    "architectures",
    "gradients",
    "norms",
    "page",
    "positions",
    "scores",
]
