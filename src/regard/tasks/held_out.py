"""Examples for validation and test: from files, or from the training text where none is named."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.errors import DataError
from regard.tasks.settings.recipe import Recipe

T = TypeVar("T")
ExampleT = TypeVar("ExampleT")

# Validation examples held out of the training text where the recipe names no file: their default
# fraction, their maximum, and the maximum up to which ``training.valid_share`` is taken.
_SHARE, _MOST = 0.02, 1000
_MOST_OF_FEW = 500
_LEAST = 10
# The fraction held out for the test, and the number of texts that it takes.
_TEST_SHARE, LEAST_FOR_TEST = 0.05, 20


@dataclass(frozen=True, slots=True)
class Parts(Generic[ExampleT]):
    """The examples of a training.

    Attributes:
        train: For the model, and for the baselines that stand beside it.
        valid: For validation: the recipe's file, or some held out of the training text.
        test: For the test, where that is a part of the training text; else none.
        overlap: How many are left out of training, since they share a side with those held out.
        references: How many of those held out for the test are only further references of others.
    """

    train: Sequence[ExampleT]
    valid: Sequence[ExampleT]
    test: Sequence[ExampleT] = ()
    overlap: int = 0
    references: int = 0


def split_examples(
    recipe: Recipe,
    read: Callable[[str], list[T]],
    subject: Callable[[T], str],
    hold_out: Callable[[list[T]], tuple[list[T], list[T]]],
    *,
    least: int = LEAST_FOR_TEST,
) -> Parts[T]:
    """The examples of a training: of its files, or held out of the training ones."""
    train, test = read("train"), list[T]()
    if not train:
        raise DataError("data.train must name the training text; got nothing.")
    if recipe.holds_out_test:
        train, test = hold_out_by_hash(train, subject, least=least)
    if not (valid := read("valid")):
        train, valid = hold_out(train)
    return Parts(train, valid, test)


def valid_share(recipe: Recipe) -> float:
    """The fraction of the training text that is validated on, ``training.valid_share``."""
    share = recipe.training.get("valid_share", _SHARE)
    return share if isinstance(share, int | float) else _SHARE


def evenly(examples: Sequence[T], *, unit: str, share: float = _SHARE) -> Sequence[T]:
    """Validation examples spread evenly, of few this ``share``; DataError below ten."""
    if len(examples) < _LEAST:
        raise DataError(
            f"data.train must hold at least {_LEAST} {unit} where data.valid is not set; "
            f"got {len(examples)}."
        )
    of_few = min(_MOST_OF_FEW, round(len(examples) * share))
    count = max(1, of_few, min(_MOST, round(len(examples) * _SHARE)))
    return examples[:: len(examples) // count][:count]


def hold_out_texts(
    examples: Sequence[T], text_of: Callable[[T], str], *, unit: str, share: float = _SHARE
) -> tuple[list[T], list[T]]:
    """Training and validation examples that share no ``text_of``; at least ten such texts."""
    held = set(evenly(list(dict.fromkeys(map(text_of, examples))), unit=unit, share=share))
    remaining = [example for example in examples if text_of(example) not in held]
    return remaining, [example for example in examples if text_of(example) in held]


def hold_out_by_hash(
    examples: Sequence[T], text_of: Callable[[T], str], *, least: int = LEAST_FOR_TEST
) -> tuple[list[T], list[T]]:
    """Training examples and one in twenty to test on, by hash; none below ``least`` texts."""
    texts = dict.fromkeys(map(text_of, examples))
    if len(texts) < least:
        return list(examples), []
    count = min(_MOST, max(1, round(len(texts) * _TEST_SHARE)))
    held = set(sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())[:count])
    remaining = [example for example in examples if text_of(example) not in held]
    return remaining, [example for example in examples if text_of(example) in held]
