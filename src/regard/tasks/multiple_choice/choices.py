"""Questions with answers to choose from, which are drawn where a file has none."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import DataError
from regard.metrics.question_answering import answer_words
from regard.text import BadLines
from regard.text.questions import Question, read_questions
from regard.text.records import Handling, OnBadLine, usable


@dataclass(frozen=True, slots=True)
class Choices:
    """A question with answers to choose from.

    Attributes:
        text: The question.
        context: The text it is about.
        choices: The answers, at least two.
        right: The place of the right one; −1 where it is asked for.
        where: Where it was read.

    Example:
        >>> import json, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tales.jsonl"
        >>> asked = {"question": "Who was old?", "context": "A king was old."}
        >>> asked |= {"choices": ["a dog", "the king"], "answers": ["the king"]}
        >>> _ = path.write_text(json.dumps(asked), encoding="utf-8")
        >>> (read,) = read_choices(path, num_wrong=1, on_bad_line="error", bad_lines=None)
        >>> read.choices, read.choices[read.right]
        (('a dog', 'the king'), 'the king')
    """

    text: str
    context: str
    choices: tuple[str, ...]
    right: int
    where: str


def read_choices(
    file: Path, *, num_wrong: int, on_bad_line: OnBadLine, bad_lines: BadLines | None
) -> Iterator[Choices]:
    """The questions of one file.

    Args:
        file: As ``read_questions`` takes it.
        num_wrong: Wrong answers drawn, for a question without choices, from the answers to other
            questions about the same story.
        on_bad_line: Whether a question that cannot be used is an error, or is left out.
        bad_lines: Where questions left out are counted.

    Raises:
        DataError: A question has no choices, and its story not enough other answers.
    """
    handling: Handling = {"on_bad_line": on_bad_line, "bad_lines": bad_lines}
    questions = list(read_questions(file, spans=False, **handling))
    stories: dict[str, list[Question]] = {}
    for question in questions:
        stories.setdefault(question.article or question.context, []).append(question)

    def make(question: Question) -> Choices:
        story = stories[question.article or question.context]
        return _with_choices(question, story, num_wrong)

    return usable(questions, make, "choices", **handling)


def _with_choices(question: Question, story: Sequence[Question], num_wrong: int) -> Choices:
    """The question with its choices, or with answers to other questions about the same story.

    The same questions get the same choices in the same order, whatever else a file holds.
    """
    right = question.answers[0].text if question.answers else ""
    if question.choices:
        if right not in question.choices:
            raise DataError(
                f"{question.where}: the first of answers must be one of choices; got {right!r} "
                f"and {list(question.choices)}."
            )
        place = question.choices.index(right)
        return Choices(question.text, question.context, question.choices, place, question.where)
    known = {answer_words(answer.text) for answer in question.answers}
    dice = random.Random(f"{question.text}\0{question.context}")
    others = dict.fromkeys(o.answers[0].text for o in story if o.answers)
    wrong: list[str] = []
    for other in dice.sample(list(others), len(others)):
        if len(wrong) < num_wrong and answer_words(other) not in known:
            known.add(answer_words(other))
            wrong.append(other)
    if len(wrong) < num_wrong:
        raise DataError(
            f"{question.where}: its story must have {num_wrong} other answers to draw wrong ones "
            f"from; got {len(wrong)}. Give choices, lower data.num_wrong, or leave the question "
            "out: on_bad_line = skip."
        )
    choices = dice.sample([right, *wrong], num_wrong + 1)
    return Choices(
        question.text, question.context, tuple(choices), choices.index(right), question.where
    )
