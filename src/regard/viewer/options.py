"""Options of a page of attention, from which every door makes its settings.

The command line has a flag for each field, the server a member of its request, and functions of
Python an argument of this name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict


@dataclass(frozen=True, kw_only=True, slots=True)
class LookOptions:
    """Options of attention shown and of answers explained; None is all.

    Attributes:
        target: Explain this output, not the model's own: a next word, a word for the mask, a class.
        against: Why the target, and not this: a word, a class, or another output.
        attribute: Methods that say how tokens contribute; none if empty. By default those that take
            little time.
        layers: Which layers, counted from 0.
        heads: Which heads, in the same way.
        neurons: Heads, as (layer, head), whose queries and keys the page has; by default all, where
            they take at most 1.5 MB.
        scores: Scores that are taken apart, as (layer, head, query, key), or as (layer, head) for
            the strongest link of the head; by default that of each layer, where these take little
            time.
        circuits: Heads, as (layer, head), whose circuits the page has; by default three whose
            scores are taken apart.
        beam_size: Hypotheses kept at each step of a run's search; by default the recipe's.

    Example:
        >>> LookOptions(target="bad", layers=[0]).given()
        {'target': 'bad', 'layers': [0]}
    """

    target: str | None = None
    against: str | None = None
    attribute: Sequence[str] | None = None
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    neurons: Sequence[tuple[int, int]] | None = None
    scores: Sequence[tuple[int, ...]] | None = None
    circuits: Sequence[tuple[int, int]] | None = None
    beam_size: int | None = None

    @property
    def contributes(self) -> bool:
        """Whether any contributions may be computed."""
        return self.attribute is None or len(self.attribute) > 0

    @property
    def requests_contributions(self) -> bool:
        """Whether contributions are wanted, of a text of any length."""
        return (self.attribute, self.target, self.against) != (None, None, None)

    def given(self) -> dict[str, Any]:
        """Given options, by name."""
        return given(self)


class LookKeywords(TypedDict, total=False):
    """``LookOptions`` as arguments."""

    target: str | None
    against: str | None
    attribute: Sequence[str] | None
    layers: Sequence[int] | None
    heads: Sequence[int] | None
    neurons: Sequence[tuple[int, int]] | None
    scores: Sequence[tuple[int, ...]] | None
    circuits: Sequence[tuple[int, int]] | None
    beam_size: int | None


# All layers and heads, the model's own answers, explained as far as it takes little time.
EVERYTHING = LookOptions()


def given(options: Any) -> dict[str, Any]:
    """Fields of a dataclass of options that are not as by default, by name."""
    values = [(option, getattr(options, option.name)) for option in fields(options)]
    return {option.name: value for option, value in values if value is not option.default}
