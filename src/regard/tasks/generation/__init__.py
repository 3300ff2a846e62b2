"""A text for a document and what is wanted of it."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.generation.documents import DocumentExample
    from regard.tasks.generation.settings import DocumentData
    from regard.tasks.generation.task import GenerationTask

__all__ = ["DocumentData", "DocumentExample", "GenerationTask"]

__getattr__ = _names(__name__, __file__)
