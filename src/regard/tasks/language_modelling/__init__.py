"""Text that goes on: what it is read from, and what comes next."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.language_modelling.running_text import Passage
    from regard.tasks.language_modelling.settings import TextData
    from regard.tasks.language_modelling.task import LanguageModelling

__all__ = ["LanguageModelling", "Passage", "TextData"]

__getattr__ = _names(__name__, __file__)
