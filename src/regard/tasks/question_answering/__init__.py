"""The stretch of a text that answers a question."""

from typing import TYPE_CHECKING

from regard.lazy import names as _names

if TYPE_CHECKING:
    from regard.tasks.question_answering.data import SpanAnswer
    from regard.tasks.question_answering.settings import QuestionsData
    from regard.tasks.question_answering.task import QuestionAnswering

__all__ = ["QuestionAnswering", "QuestionsData", "SpanAnswer"]

__getattr__ = _names(__name__, __file__)
