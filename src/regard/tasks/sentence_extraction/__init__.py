"""Summaries made of sentences that are taken out of the document."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.sentence_extraction.settings import ExtractionData
    from regard.tasks.sentence_extraction.task import SentenceExtraction

__all__ = ["ExtractionData", "SentenceExtraction"]

__getattr__ = _names(__name__, __file__)
