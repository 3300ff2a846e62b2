"""How two texts stand to each other."""

from regard.tasks.pair_matching.task import PAIR_MODELS, LabelledPair, PairMatching, PairsData

__all__ = ["PAIR_MODELS", "LabelledPair", "PairMatching", "PairsData"]
