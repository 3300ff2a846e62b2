"""The options of a search, the same for every command that writes outputs."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.options import UNLISTED

if TYPE_CHECKING:
    from regard.config import JsonValue


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingOptions:
    """How outputs are searched for; what is left out is as the recipe says.

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
        require: Beam: words that every output holds, in any order: --require "New York" --require
            taxi. Needs a beam wider than they have tokens.
        avoid: Words that no output holds.
        max_tokens: Language models: how much to write after a prompt.
        one_line: Language models: stop where a line ends.
    """

    method: Literal["beam", "greedy", "sample"] | None = None
    beam_size: int | None = None
    length_penalty: Annotated[float | None, UNLISTED] = None
    coverage_penalty: Annotated[float | None, UNLISTED] = None
    min_length: Annotated[int | None, UNLISTED] = None
    temperature: float | None = None
    top_k: Annotated[int | None, UNLISTED] = None
    top_p: float | None = None
    seed: int | None = None
    repetition_penalty: Annotated[float | None, UNLISTED] = None
    no_repeat_ngram: Annotated[int | None, UNLISTED] = None
    prefix: Annotated[str | None, UNLISTED] = None
    require: Annotated[tuple[str, ...] | None, UNLISTED] = None
    avoid: Annotated[tuple[str, ...] | None, UNLISTED] = None
    max_tokens: int | None = None
    one_line: Annotated[bool | None, UNLISTED] = None

    def given(self) -> "dict[str, JsonValue]":
        """Given options, by the names of ``[decoding]``."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def flags(self) -> "dict[str, JsonValue]":
        """Given options, by the names on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in self.given().items()}


# Nothing said: everything as the recipe says.
AS_THE_RECIPE_SAYS = DecodingOptions()
