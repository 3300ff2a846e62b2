"""The label of a text: its data, its task, and how its words are spelled."""

from regard.tasks.classification.task import (
    Classification,
    ClassificationData,
    EncodedText,
    LabelledText,
)

__all__ = ["Classification", "ClassificationData", "EncodedText", "LabelledText"]
