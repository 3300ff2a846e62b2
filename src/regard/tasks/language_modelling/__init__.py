"""Text that goes on: what it is read from, and what comes next."""

from regard.tasks.language_modelling.running_text import Passage
from regard.tasks.language_modelling.task import LanguageModelling, TextData

__all__ = ["LanguageModelling", "Passage", "TextData"]
