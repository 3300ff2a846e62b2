"""Tasks about questions on a text: how they are read, asked and held out, and tables of figures."""

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from regard.errors import DataError
from regard.tasks.oddities import CheckedExample
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.tables import Table, by_group, question_word
from regard.tasks.task import AnswerT
from regard.text import normalize
from regard.text.reading.questions import QUESTION_FIELDS, Question, parse_question, read_questions
from regard.text.reading.records import Handling, usable
from regard.text.reading.tables import Field

T = TypeVar("T")
MATCH, OTHER = "match", "other"
# Columns of tables for metrics that are called otherwise.
_COLUMNS = {"exact_match": "exact match", "f1": "F1"}


@runtime_checkable
class ContextQuestion(Protocol):
    """A question about a text."""

    @property
    def text(self) -> str:
        """The question."""

    @property
    def context(self) -> str:
        """The text it is about."""


ExampleT = TypeVar("ExampleT", bound=ContextQuestion)


class ContextTask(OnePassTask[ExampleT, AnswerT]):
    """A task about questions on a text; no text is both trained and validated on."""

    unit: ClassVar[str] = "questions"
    without_overlap: ClassVar[tuple[str, str]] = ("context", "texts with questions")

    @abstractmethod
    def scores(self, answer: AnswerT, example: ExampleT) -> Mapping[str, float]:
        """Each of ``metrics`` for one answer, from 0 to 1."""

    @staticmethod
    def subject(example: ExampleT) -> str:
        return example.context

    def score(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> dict[str, float]:
        columns = self._columns(answers, examples)
        return {name: 100 * sum(values) / max(1, len(values)) for name, values in columns.items()}

    def tables(self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]) -> list[Table]:
        """Figures by question word and by ``groups``."""
        columns = self._columns(answers, examples)
        scores = {_COLUMNS.get(name, name): values for name, values in columns.items()}
        words = [question_word(example.text) for example in examples]
        by_word = [by_group("question word", words, scores)] if words else []
        return [*by_word, *self.tables_by_group(examples, scores)]

    def _columns(
        self, answers: Sequence[AnswerT], examples: Sequence[ExampleT]
    ) -> dict[str, list[float]]:
        every = [self.scores(a, e) for a, e in zip(answers, examples, strict=True)]
        return {name: [scores[name] for scores in every] for name in self.metrics}


class QuestionTask(ContextTask[Question, AnswerT]):
    """A task whose questions are answered by a part of their text."""

    request = staticmethod(parse_question)

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[Question]:
        return read_questions(file, **handling)

    @staticmethod
    def checked(example: Question) -> CheckedExample:
        answers = tuple(answer.text for answer in example.answers)
        return CheckedExample((example.text, example.context), (), example.where, answers)

    @staticmethod
    def named_texts(example: Question) -> dict[str, str]:
        answers = " | ".join(answer.text for answer in example.answers)
        return {"context": example.context, "question": example.text, "answer": answers or "none"}

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        return QUESTION_FIELDS


def read_stories(
    file: Path,
    handling: Handling,
    name: str,
    *,
    story_of: Callable[[Question], str],
    part_of: Callable[[Question], str | None],
    make: Callable[[Question, Sequence[str]], T],
) -> Iterator[T]:
    """Results of ``make`` for each question and the parts that questions on its story share."""
    questions = list(read_questions(file, spans=False, **handling))
    parts: dict[str, dict[str, None]] = {}
    for question in questions:
        if (part := part_of(question)) is not None:
            parts.setdefault(story_of(question), {})[part] = None
    return usable(
        questions,
        lambda question: make(question, list(parts.get(story_of(question), ()))),
        name,
        **handling,
    )


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, normalised, and the label of their relation, None where it is to be predicted."""

    first: str
    second: str
    label: str | None
    where: str


def read_matching(file: Path, handling: Handling) -> Iterator[LabelledPair]:
    """Questions of SQuAD's layout, each with its own passage and with another of its article."""

    def make(question: Question, passages: Sequence[str]) -> list[LabelledPair]:
        distractors = [passage for passage in passages if passage != question.context]
        if not distractors:
            raise DataError(
                f"{question.where}: its article must have another passage; got none. Leave it out: "
                "on_bad_line = skip."
            )
        # Always the same one, whatever else the file holds.
        distractor = random.Random(f"{question.text}\0{question.context}").choice(distractors)
        return [
            LabelledPair(question.text, normalize(passage), label, question.where)
            for passage, label in ((question.context, MATCH), (distractor, OTHER))
        ]

    article, context = attrgetter("article"), attrgetter("context")
    made = read_stories(file, handling, "pairs", story_of=article, part_of=context, make=make)
    return chain.from_iterable(made)
