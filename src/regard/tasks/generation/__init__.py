"""A text for a document and what is wanted of it."""

from regard.tasks.generation.documents import Document, DocumentData

__all__ = ["Document", "DocumentData"]
