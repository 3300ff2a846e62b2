"""Examples for validation and test: from files, or from the training text where none is named."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from regard.errors import DataError
from regard.tasks.checking import CheckedExample
from regard.tasks.recipe import Recipe
from regard.tasks.settings import DataFiles
from regard.text import BadLines
from regard.text.reading.questions import Question, read_questions

T = TypeVar("T")
ExampleT = TypeVar("ExampleT")

# What validation takes from the training text where the recipe names no validation file: of runs
# that do not say, and of any text; and examples up to which it takes the share that they say.
_SHARE, _MOST = 0.02, 1000
_MOST_OF_FEW = 500
_LEAST = 10
# What the test takes, where there are so many texts.
_TEST_SHARE, LEAST_FOR_TEST = 0.05, 20


@dataclass(frozen=True, slots=True)
class Parts(Generic[ExampleT]):
    """The examples of a training.

    Attributes:
        train: What the model learns from; and so does whatever is to stand beside it.
        valid: What it is validated on: the recipe's file, or some held out of the training text.
        test: What it is tested on, where that is a part of the training text; else none.

    Example:
        >>> parts = Parts(*hold_out_texts(range(30), lambda n: str(n % 10), unit="last digits"))
        >>> len(parts.train), parts.valid, parts.test
        (27, [0, 10, 20], ())
    """

    train: Sequence[ExampleT]
    valid: Sequence[ExampleT]
    test: Sequence[ExampleT] = ()


def valid_share(recipe: Recipe) -> float:
    """How much of the training text is validated on, ``training.valid_share``."""
    share = recipe.training.get("valid_share", _SHARE)
    return share if isinstance(share, int | float) else _SHARE


def evenly(examples: Sequence[T], *, unit: str, share: float = _SHARE) -> Sequence[T]:
    """A few examples spread evenly over the text, to validate on.

    Args:
        examples: All of them.
        unit: What they are called, in the plural.
        share: How much of them, where they are few.

    Raises:
        DataError: There are fewer than ten.

    Example:
        >>> evenly(range(100), unit="numbers")
        range(0, 100, 50)
        >>> len(evenly(range(100), unit="numbers", share=0.1))
        10
    """
    if len(examples) < _LEAST:
        raise DataError(
            f"data.train must hold at least {_LEAST} {unit} where data.valid is not set; "
            f"got {len(examples)}."
        )
    of_few = min(_MOST_OF_FEW, round(len(examples) * share))
    wanted = max(1, of_few, min(_MOST, round(len(examples) * _SHARE)))
    return examples[:: len(examples) // wanted][:wanted]


def hold_out_texts(
    examples: Sequence[T], text_of: Callable[[T], str], *, unit: str, share: float = _SHARE
) -> tuple[list[T], list[T]]:
    """Examples to train on, and a few to validate on: no text that they are about is among both.

    Args:
        examples: All of them.
        text_of: The text that an example is about.
        unit: What the texts are called, in the plural.
        share: How many of the texts are validated on, where they are few.

    Raises:
        DataError: There are fewer than ten texts.

    Example:
        >>> rest, valid = hold_out_texts(range(30), lambda n: str(n % 10), unit="last digits")
        >>> len(rest), valid
        (27, [0, 10, 20])
    """
    held = set(evenly(list(dict.fromkeys(map(text_of, examples))), unit=unit, share=share))
    rest = [example for example in examples if text_of(example) not in held]
    return rest, [example for example in examples if text_of(example) in held]


def hold_out_by_hash(
    examples: Sequence[T], text_of: Callable[[T], str], *, least: int = LEAST_FOR_TEST
) -> tuple[list[T], list[T]]:
    """The examples to train on, and one in twenty to test on: no text is among both.

    Those are the texts with the smallest hashes, so that a longer file holds out nearly the same
    ones, whatever their order.

    Args:
        examples: All of them.
        text_of: The text that an example is about.
        least: Fewer different texts than these are all trained on.

    Example:
        >>> rest, test = hold_out_by_hash(range(80), lambda number: str(number % 40))
        >>> len(rest), test
        (76, [9, 39, 49, 79])
    """
    texts = dict.fromkeys(map(text_of, examples))
    if len(texts) < least:
        return list(examples), []
    wanted = min(_MOST, max(1, round(len(texts) * _TEST_SHARE)))
    held = set(sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())[:wanted])
    rest = [example for example in examples if text_of(example) not in held]
    return rest, [example for example in examples if text_of(example) in held]


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
    handling = recipe.settings(DataFiles).on_bad_line
    return [
        question
        for file in recipe.files(split)
        for question in read_questions(file, spans=spans, on_bad_line=handling, bad_lines=bad_lines)
    ]


def hold_out_contexts(recipe: Recipe, examples: Sequence[T]) -> tuple[list[T], list[T]]:
    """The questions to train on and those to validate on, which are about other texts."""
    return hold_out_texts(
        examples, attrgetter("context"), unit="texts with questions", share=valid_share(recipe)
    )


def checked_question(question: Question) -> CheckedExample:
    """A question, its text and the right answers."""
    answers = tuple(answer.text for answer in question.answers)
    return CheckedExample((question.text, question.context), (), question.where, answers)
