"""A text for a document and what is wanted of it."""

from regard.tasks.generation.documents import Document, DocumentData
from regard.tasks.generation.task import GenerationTask

__all__ = ["Document", "DocumentData", "GenerationTask"]
