"""Architectures, gradients, scores, positions, norms and bandwidths side by side, measured."""

from regard.comparison.architectures import Architectures, architectures
from regard.comparison.bandwidths import Bandwidths, bandwidths
from regard.comparison.gradients import Gradients, gradients
from regard.comparison.norms import Norms, norms
from regard.comparison.page import page
from regard.comparison.positions import Positions, positions
from regard.comparison.scores import Scores, scores

__all__ = [
    "Architectures",
    "Bandwidths",
    "Gradients",
    "Norms",
    "Positions",
    "Scores",
    "architectures",
    "bandwidths",
    "gradients",
    "norms",
    "page",
    "positions",
    "scores",
]
