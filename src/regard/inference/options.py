"""Options of answers, from which every door makes its settings; of looks: ``viewer.options``.

The command line has a flag for each field, the server a member of its request, and ``Predictor`` an
argument of this name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from regard.viewer.options import given

if TYPE_CHECKING:
    from regard.config import JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerOptions:
    """Options of a search, and of the fields of its answers; None is as the recipe says.

    Attributes:
        method: Search for the likeliest output in a beam, greedily, or draw samples.
        beam_size: Hypotheses at each step; 1 is greedy.
        length_penalty: Higher gives longer outputs; 0.6 is usual.
        coverage_penalty: Beam: penalty for parts of the source that are left out; try 0.2.
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
        return given(self)

    def search(self) -> "dict[str, JsonValue]":
        """Settings of the search that are given, by the names of ``[decoding]``."""
        return {n: value for n, value in given(self).items() if n not in ("attention", "layers")}
