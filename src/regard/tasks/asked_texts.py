"""Questions about texts, as several tasks read them and hold some of them out."""

from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from regard.tasks.held_out import hold_out_texts
from regard.tasks.recipe import Recipe
from regard.text import BadLines
from regard.text.questions import Question, read_questions

ExampleT = TypeVar("ExampleT")


def read_asked(
    recipe: Recipe, split: str, *, spans: bool = True, bad_lines: BadLines | None = None
) -> list[Question]:
    """The questions of a split; none if the recipe names no file.

    Args:
        recipe: Whose ``[data]`` says where they are.
        split: ``train``, ``valid`` or ``test``.
        spans: Whether an answer must stand in its text.
        bad_lines: Where questions left out are counted.
    """
    handling = recipe.data.on_bad_line
    return [
        question
        for file in recipe.files(split)
        for question in read_questions(file, spans=spans, on_bad_line=handling, bad_lines=bad_lines)
    ]


def hold_out_contexts(
    recipe: Recipe, examples: Sequence[ExampleT]
) -> tuple[list[ExampleT], list[ExampleT]]:
    """The questions to train on and those to validate on, which are about other texts."""
    return hold_out_texts(examples, attrgetter("context"), unit="texts with questions")
