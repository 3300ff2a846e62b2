"""The label of a text: its data, its task, and how its words are spelled."""

from regard.tasks.classification.data import ClassificationData, EncodedText, LabelledText
from regard.tasks.classification.task import Classification

__all__ = ["Classification", "ClassificationData", "EncodedText", "LabelledText"]
