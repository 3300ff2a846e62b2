"""How two texts stand to each other."""

from regard.tasks.pair_matching.task import LabelledPair, PairMatching, PairsData

__all__ = ["LabelledPair", "PairMatching", "PairsData"]
