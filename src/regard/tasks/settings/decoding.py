"""Settings of the search for outputs: the ``[decoding]`` table of a recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

from regard.bounds import (
    BeamSize,
    CoverageWeight,
    LengthPenalty,
    MaxLength,
    MinLength,
    NumOutputs,
    RepetitionWeight,
    Temperature,
    TopP,
)
from regard.checks import choose
from regard.config import JsonValue
from regard.errors import SettingError
from regard.fields import Count, Natural, Weight, at_most, check_fields


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingConfig:
    """Settings of the search for outputs.

    Attributes:
        method: beam keeps the likeliest beginnings side by side; greedy takes the likeliest token
            at each step; sample draws tokens by their probability, for answers that vary.
        beam_size: Beam only: beginnings kept at each step; 1 is greedy.
        n_best: Answers given for each input: the best of a beam, or as many samples.
        length_penalty: Alpha of ((5 + length) / 6) ** alpha, which log-probabilities are divided by
            before answers are compared. 0 favours short answers, 1 evens lengths out.
        coverage_penalty: Beam only: beta of the penalty for source tokens that an answer never
            looked at, so that less is left out; 0.2 is usual, 0 is off.
        min_length: Fewest tokens of an answer.
        temperature: Sample only: below 1 likely tokens become likelier, above 1 all more alike.
        top_k: Sample only: draw from this many likeliest tokens. None draws from all.
        top_p: Sample only: draw from the fewest likeliest tokens that together have this
            probability; 0.9 is usual, 1 draws from all.
        repetition_penalty: Factor on the log-probability of a token once it is written;
            1.2 is usual, 1 is off.
        no_repeat_ngram: No run of so many tokens comes twice in an answer. None allows all.
        prefix: Words that every answer begins with.
        avoid: Words that no answer holds, as they are spelled, however they are cut into tokens.
        seed: Sample only: other seeds draw other answers. The same text gets the same answer in
            any company.
        max_tokens: Language models only: tokens written after each prompt.
        one_line: Language models only: whether to stop where a line ends.
        max_ratio: Longest output as a multiple of the source's tokens, ten tokens added.
        batch_tokens: Source tokens translated at once, beam included.
    """

    method: Literal["beam", "greedy", "sample"] = "beam"
    beam_size: BeamSize = 5
    n_best: NumOutputs = 1
    length_penalty: LengthPenalty = 0.6
    coverage_penalty: CoverageWeight = 0.0
    min_length: MinLength = 0
    temperature: Temperature = 1.0
    top_k: Count | None = None
    top_p: TopP = 1.0
    repetition_penalty: RepetitionWeight = 1.0
    no_repeat_ngram: Count | None = None
    prefix: str = ""
    avoid: tuple[str, ...] = ()
    seed: Natural = 0
    max_tokens: MaxLength = 200
    one_line: bool = False
    max_ratio: Annotated[Weight, at_most(1000)] = 2.0
    batch_tokens: Count = 16384

    retired: ClassVar[Mapping[str, JsonValue]] = {
        "groups": 1,
        "diversity": 0.5,
        "minimum_bayes_risk": None,
        "require": [],
    }

    def __post_init__(self) -> None:
        check_fields(self)
        if not all(word.strip() for word in self.avoid):
            raise SettingError("avoid must name words; got an empty one.")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value != setting.default and not _is_used(setting.name, self.method):
                raise _unused(setting.name, value, self.method)
        if self.method == "beam" and self.n_best > self.beam_size:
            raise SettingError(
                f"n_best must be at most beam_size; got n_best={self.n_best}, "
                f"beam_size={self.beam_size}. A wider beam finds more answers."
            )

    def changed(self, **changes: object) -> "DecodingConfig":
        """The settings with some of them given anew, of which the method has a use for each.

        A new method drops the settings that it has no use for.

        Example:
            >>> drawn = DecodingConfig(method="sample", temperature=0.7)
            >>> drawn.changed(method="beam", beam_size=3).temperature
            1.0
        """
        method = changes.get("method", self.method)
        choose("method", method, _USED_BY)
        for name, value in changes.items():
            # Every method gives a single answer.
            if not _is_used(name, str(method)) and (name, value) != ("n_best", 1):
                raise _unused(name, value, str(method))
        names = [setting.name for setting in fields(self)]
        used = [n for n in names if method == self.method or _is_used(n, str(method))]
        values = {name: getattr(self, name) for name in used}
        values.update(changes)
        return DecodingConfig(**values)

    def plain(self) -> "DecodingConfig":
        """Greedy search without constraints: the output of the model by itself."""
        return DecodingConfig(
            method="greedy",
            length_penalty=self.length_penalty,
            max_ratio=self.max_ratio,
            batch_tokens=self.batch_tokens,
        )

    def check_min_length(self, name: str, longest: int) -> None:
        """Raise SettingError if an answer must be longer than the setting of this name allows."""
        if self.min_length > longest:
            raise SettingError(
                f"min_length must be at most {name} = {longest}; got {self.min_length}."
            )


# The settings that only some methods have a use for.
_USED_BY: dict[str, tuple[str, ...]] = {
    "beam": ("beam_size", "n_best", "coverage_penalty"),
    "greedy": (),
    "sample": ("n_best", "temperature", "top_k", "top_p", "seed"),
}


def _is_used(name: str, method: str) -> bool:
    return name in _USED_BY[method] or not any(name in used for used in _USED_BY.values())


def _unused(name: str, value: object, method: str) -> SettingError:
    methods = " or ".join(candidate for candidate, used in _USED_BY.items() if name in used)
    return SettingError(
        f"{name} must go with method {methods}; got {name}={value} with method {method}."
    )
