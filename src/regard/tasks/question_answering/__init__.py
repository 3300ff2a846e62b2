"""The stretch of a text that answers a question."""

from regard.tasks.question_answering.task import QuestionAnswering, QuestionsData, SpanAnswer

__all__ = ["QuestionAnswering", "QuestionsData", "SpanAnswer"]
