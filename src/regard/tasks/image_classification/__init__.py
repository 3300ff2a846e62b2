"""The label of a picture."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.image_classification.settings import PicturesData
    from regard.tasks.image_classification.task import ImageClassification

__all__ = ["ImageClassification", "PicturesData"]

__getattr__ = _names(__name__, __file__)
