"""The right one of several answers to a question about a text."""

from regard.tasks.multiple_choice.choices import Choices
from regard.tasks.multiple_choice.task import Choice, ChoicesData, MultipleChoiceAnswering

__all__ = ["Choice", "Choices", "ChoicesData", "MultipleChoiceAnswering"]
