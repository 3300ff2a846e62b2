"""A sentence for a sentence."""

from regard.tasks.translation.task import TranslationTask, text_of

__all__ = ["TranslationTask", "text_of"]
