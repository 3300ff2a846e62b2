"""What a run of any task learns from, and what it is judged by."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.tasks.classification import LabelledText
from regard.tasks.held_out import LEAST_FOR_TEST, hold_out_by_hash
from regard.tasks.language_modelling import Passage
from regard.tasks.multiple_choice import Choices
from regard.tasks.pair_matching import LabelledPair
from regard.tasks.recipe import Recipe
from regard.tasks.registry import TASKS
from regard.tasks.translation import read_held_out, read_training
from regard.text import BadLines
from regard.text.points import Point
from regard.text.questions import Question
from regard.text.tagged import TaggedWords


@dataclass(frozen=True, slots=True)
class Parts:
    """The examples of a training.

    Attributes:
        train: What the model learns from; and so does whatever is to stand beside it.
        valid: What it is validated on: the recipe's file, or some held out of the training text.
        test: What it is tested on, where that is a part of the training text; else none.
    """

    train: Sequence[object]
    valid: Sequence[object]
    test: Sequence[object] = ()


def read_parts(recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts:
    """The examples of a recipe's training, the same ones whenever they are asked for.

    Args:
        recipe: Of any task.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: The training text is not named, cannot be read, or is too short to hold some out.
    """
    task = TASKS[recipe.task].task
    if task is None:
        train, valid = read_training(recipe, bad_lines=bad_lines)
        return Parts(train, valid, read_held_out(recipe) if recipe.holds_out_test else ())
    train = task.read(recipe, "train", bad_lines=bad_lines)
    if not train:
        raise DataError("data.train must name the training text; got nothing.")
    test: Sequence[object] = ()
    if recipe.holds_out_test:
        train, test = hold_out_by_hash(train, subject, least=_least(train))
    valid = task.read(recipe, "valid", bad_lines=bad_lines)
    if not valid:
        train, valid = task.hold_out(recipe, train)
    return Parts(train, valid, test)


def subject(example: object) -> str:
    """The text that an example is about, which others may be about too; else all it says."""
    match example:
        case LabelledText():
            return example.text
        case TaggedWords():
            return " ".join(example.words)
        case Passage():
            return example.text()
        case LabelledPair():
            return example.first
        case Question() | Choices():
            return example.context
        case Point():
            return repr(example.inputs)
    return repr(example)


def _least(examples: Sequence[object]) -> int:
    """How many texts there must be: a passage is many lines, and two are left of three."""
    return 3 if isinstance(examples[0], Passage) else LEAST_FOR_TEST
