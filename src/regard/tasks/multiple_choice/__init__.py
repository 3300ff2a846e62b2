"""The right one of several answers to a question about a text."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.multiple_choice.choices import Choices
    from regard.tasks.multiple_choice.settings import ChoicesData
    from regard.tasks.multiple_choice.task import Choice, MultipleChoiceAnswering

__all__ = ["Choice", "Choices", "ChoicesData", "MultipleChoiceAnswering"]

__getattr__ = _names(__name__, __file__)
