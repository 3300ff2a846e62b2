"""How two texts stand to each other."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.pair_matching.settings import PairsData
    from regard.tasks.pair_matching.task import LabelledPair, PairMatching

__all__ = ["LabelledPair", "PairMatching", "PairsData"]

__getattr__ = _names(__name__, __file__)
