"""What a run of any task learns from, and what it is judged by."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.tasks.kinds import TASKS
from regard.tasks.recipe import Recipe
from regard.tasks.translation import read_training
from regard.text import BadLines


@dataclass(frozen=True, slots=True)
class Parts:
    """The examples of a training.

    Attributes:
        train: What the model learns from; and so does whatever is to stand beside it.
        valid: What it is validated on: the recipe's file, or some held out of the training text.
    """

    train: Sequence[object]
    valid: Sequence[object]


def read_parts(recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts:
    """The examples of a recipe's training, the same ones whenever they are asked for.

    Args:
        recipe: Of any task.
        bad_lines: Where lines left out are counted.

    Raises:
        DataError: The training text is not named, cannot be read, or is too short to hold some out.
    """
    job = TASKS[recipe.task].job
    if job is None:
        return Parts(*read_training(recipe, bad_lines=bad_lines))
    train = job.read(recipe, "train", bad_lines=bad_lines)
    if not train:
        raise DataError("data.train must name the training text; got nothing.")
    valid = job.read(recipe, "valid", bad_lines=bad_lines)
    return Parts(train, valid) if valid else Parts(*job.hold_out(recipe, train))
