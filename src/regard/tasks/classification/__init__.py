"""The label of a text: its data, its task, and how its words are spelled."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.classification.data import EncodedText, LabelledText
    from regard.tasks.classification.settings import ClassificationData
    from regard.tasks.classification.task import Classification

__all__ = ["Classification", "ClassificationData", "EncodedText", "LabelledText"]

__getattr__ = _names(__name__, __file__)
