"""Searches over a step function: from a model's log-probabilities to its answers."""

from regard.decoding.beam import beam
from regard.decoding.coverage import CoveragePenalty
from regard.decoding.greedy import greedy
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.options import SearchOptions
from regard.decoding.rules import NoRepeatedNgrams, Prefix, RepetitionPenalty, Rule, Written
from regard.decoding.sampling import Draw, sample
from regard.decoding.step import Limits, State, Step
from regard.decoding.streaming import StreamedToken, stream

__all__ = [
    "CoveragePenalty",
    "Draw",
    "Hypothesis",
    "Limits",
    "NoRepeatedNgrams",
    "Prefix",
    "RepetitionPenalty",
    "Rule",
    "SearchOptions",
    "State",
    "Step",
    "StreamedToken",
    "Written",
    "beam",
    "greedy",
    "sample",
    "stream",
]
