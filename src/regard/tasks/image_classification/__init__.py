"""The label of a picture."""

from regard.tasks.image_classification.task import ImageClassification, PicturesData

__all__ = ["ImageClassification", "PicturesData"]
