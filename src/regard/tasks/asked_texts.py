"""Questions about texts, as several tasks read them and hold some of them out."""

from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from regard.tasks.held_out import hold_out_texts
from regard.tasks.recipe import Recipe
from regard.text import BadLines
from regard.text.questions import Question, read_questions

ExampleT = TypeVar("ExampleT")


def read_asked(recipe: Recipe, split: str, *, bad_lines: BadLines | None = None) -> list[Question]:
    """The questions of a split; none if the recipe names no file."""
    handling = recipe.data.on_bad_line
    return [
        question
        for file in recipe.files(split)
        for question in read_questions(file, on_bad_line=handling, bad_lines=bad_lines)
    ]


def hold_out_contexts(
    recipe: Recipe, examples: Sequence[ExampleT]
) -> tuple[list[ExampleT], list[ExampleT]]:
    """The questions to train on and those to validate on, which are about other texts."""
    return hold_out_texts(examples, attrgetter("context"), unit="texts with questions")
