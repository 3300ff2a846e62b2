"""The sentence of a text that answers a question, by a memory network."""

from regard.tasks.sentence_selection.memories import SentencesData
from regard.tasks.sentence_selection.task import SentenceSelection

__all__ = ["SentenceSelection", "SentencesData"]
