"""Searches over a step function: from a model's log-probabilities to its answers."""

from regard.decoding.beam import beam
from regard.decoding.greedy import greedy
from regard.decoding.hypothesis import (
    LENGTH_PENALTIES,
    Average,
    Gnmt,
    Hypothesis,
    LengthPenalty,
)
from regard.decoding.step import Limits, State, Step

__all__ = [
    "LENGTH_PENALTIES",
    "Average",
    "Gnmt",
    "Hypothesis",
    "LengthPenalty",
    "Limits",
    "State",
    "Step",
    "beam",
    "greedy",
]
