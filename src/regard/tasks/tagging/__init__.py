"""A tag for each word of a sentence."""

from regard.tasks.tagging.data import TaggingData
from regard.tasks.tagging.task import Tagging

__all__ = ["Tagging", "TaggingData"]
