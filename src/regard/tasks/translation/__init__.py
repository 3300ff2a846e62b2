"""A sentence for a sentence."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.translation.task import TranslationTask, text_of

__all__ = ["TranslationTask", "text_of"]

__getattr__ = _names(__name__, __file__)
