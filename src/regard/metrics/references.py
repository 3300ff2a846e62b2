"""Right answers as people keep them, and as sacrebleu wants them."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from regard.errors import DataError

# For every sentence its right answer, or several; their number may differ.
References = Sequence[str | Sequence[str]]


def answers(references: References) -> list[tuple[str, ...]]:
    """Every sentence's right answers as a tuple.

    Raises:
        DataError: A sentence has none.

    Example:
        >>> answers(["Hi.", ["Run!", "Run."]])
        [('Hi.',), ('Run!', 'Run.')]
    """
    found = [(one,) if isinstance(one, str) else tuple(one) for one in references]
    for index, one in enumerate(found):
        if not one:
            raise DataError(f"references[{index}] must hold at least one answer; got none.")
    return found


def streams(hypotheses: Sequence[str], references: References) -> list[list[Any]]:
    """The references one stream after another, with None where a sentence has no more.

    sacrebleu takes None, though its types speak of text only.

    Args:
        hypotheses: The outputs they belong to.
        references: Right answers of each.

    Raises:
        DataError: There are no outputs, not one per sentence, or a sentence without an answer.

    Example:
        >>> streams(["Hello.", "Go!"], ["Hi.", ["Run!", "Run."]])
        [['Hi.', 'Run!'], [None, 'Run.']]
    """
    found = answers(references)
    if len(found) != len(hypotheses):
        raise DataError(
            f"references must have one entry per output; got {len(found)} for "
            f"{len(hypotheses)} outputs."
        )
    if not found:
        raise DataError("hypotheses must hold at least one output; got none.")
    return [list(stream) for stream in zip_longest(*found)]
