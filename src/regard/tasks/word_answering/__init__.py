"""The word that answers a question about a text, by a memory network."""

from regard.tasks.word_answering.task import WordAnswer, WordAnswering

__all__ = ["WordAnswer", "WordAnswering"]
