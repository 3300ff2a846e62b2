"""The word that answers a question about a text, by a memory network."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.word_answering.task import WordAnswer, WordAnswering

__all__ = ["WordAnswer", "WordAnswering"]

__getattr__ = _names(__name__, __file__)
