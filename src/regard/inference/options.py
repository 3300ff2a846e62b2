"""Options of answers and of looks: one class each, from which every door makes its settings.

The command line has a flag for each field, the server a member of its request, and ``Predictor`` an
argument of this name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from regard.config import JsonValue
    from regard.interop.pages.explaining import Why


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerOptions:
    """How outputs are searched for, and what comes with them; None is as the recipe says.

    Attributes:
        method: Search for the likeliest output in a beam, greedily, or draw samples.
        beam_size: Hypotheses at each step; 1 is greedy.
        length_penalty: Higher gives longer outputs; 0.6 is usual.
        coverage_penalty: Beam: what is lost for parts of the source that are left out; try 0.2.
        min_length: Fewest tokens of an output.
        temperature: Sample: below 1 for likelier tokens.
        top_k: Sample: draw from this many likeliest tokens only.
        top_p: Sample: draw from the likeliest tokens of this probability in all.
        seed: Sample: another one draws other outputs.
        repetition_penalty: Above 1, tokens that are written already become less likely; try 1.2.
        no_repeat_ngram: No run of so many tokens comes twice; try 3.
        prefix: Words that every output begins with.
        avoid: Words that no output holds.
        max_tokens: Language models: how much to write after a prompt.
        one_line: Language models: stop where a line ends.
        max_ratio: Longest output as a multiple of the source's tokens.
        n_best: Outputs of each text, with numbers and scores: of a beam, or so many samples.
        attention: Add the strongest links between tokens, source-output, counted from 0; in JSON
            the tokens and all weights.
        layers: Whose attention, counted from 0; by default of all.

    Example:
        >>> AnswerOptions(beam_size=1, attention=True).search()
        {'beam_size': 1}
    """

    method: Literal["beam", "greedy", "sample"] | None = None
    beam_size: int | None = None
    length_penalty: float | None = None
    coverage_penalty: float | None = None
    min_length: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram: int | None = None
    prefix: str | None = None
    avoid: tuple[str, ...] | None = None
    max_tokens: int | None = None
    one_line: bool | None = None
    max_ratio: float | None = None
    n_best: int | None = None
    attention: bool = False
    layers: Sequence[int] | None = None

    def given(self) -> "dict[str, JsonValue]":
        """Options that are given, by name."""
        return _given(self)

    def search(self) -> "dict[str, JsonValue]":
        """Settings of the search that are given, by the names of ``[decoding]``."""
        return {n: value for n, value in _given(self).items() if n not in ("attention", "layers")}


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

    def given(self) -> dict[str, object]:
        """Given options, by name."""
        return _given(self)

    def why(self, *, target: str | None) -> "Why":
        """The explanation that is asked for: of ``target``, or of the model's own output."""
        from regard.interop.pages.explaining import Why

        return Why(
            target=target,
            against=self.against,
            methods=self.attribute,
            neurons=self.neurons,
            scores=self.scores,
            circuits=self.circuits,
        )


# All layers and heads, the model's own answers, explained as far as it takes little time.
EVERYTHING = LookOptions()


def _given(options: AnswerOptions | LookOptions) -> dict[str, Any]:
    values = [(each, getattr(options, each.name)) for each in fields(options)]
    return {each.name: value for each, value in values if value is not each.default}
