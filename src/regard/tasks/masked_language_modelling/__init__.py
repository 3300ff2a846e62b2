"""Words hidden in a text, and windows of text whose words are hidden."""

from regard.tasks.masked_language_modelling.task import MaskedLanguageModelling, MaskedTextData

__all__ = ["MaskedLanguageModelling", "MaskedTextData"]
