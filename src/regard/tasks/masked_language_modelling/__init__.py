"""Words hidden in a text, and windows of text whose words are hidden."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.masked_language_modelling.settings import MaskedTextData
    from regard.tasks.masked_language_modelling.task import MaskedLanguageModelling

__all__ = ["MaskedLanguageModelling", "MaskedTextData"]

__getattr__ = _names(__name__, __file__)
