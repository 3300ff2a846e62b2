"""The sentence of a text that answers a question, by a memory network."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.sentence_selection.settings import SentencesData
    from regard.tasks.sentence_selection.task import SentenceSelection

__all__ = ["SentenceSelection", "SentencesData"]

__getattr__ = _names(__name__, __file__)
