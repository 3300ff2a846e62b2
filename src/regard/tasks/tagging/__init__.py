"""A tag for each word of a sentence."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.tagging.settings import TaggingData
    from regard.tasks.tagging.task import Tagging

__all__ = ["Tagging", "TaggingData"]

__getattr__ = _names(__name__, __file__)
