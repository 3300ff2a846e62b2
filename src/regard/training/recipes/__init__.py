"""The door of a training: names, files, data and settings become one recipe."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.config import JsonValue, format_setting

Settings = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class InferredTask:
    """Inferred task of a file; no recipe is one made for its sentence pairs."""

    description: str  # the examples, in the plural
    reason: str  # the evidence
    recipe: str | None = None
    settings: Settings = field(default_factory=dict)  # over the recipe's, such as its columns
    examples: tuple[Mapping[str, str], ...] = ()  # the first ones, by the names of their fields

    def command(
        self, files: Sequence[str], verb: str = "train", options: Sequence[str] = ()
    ) -> str:
        """The command that names recipe and settings, with options of its own at the end."""
        words = [*verb.split(), *([self.recipe] if self.recipe else []), *files]
        for name, value in self.settings.items():
            words += ["--set", format_setting(name, value)]
        return shlex.join(["regard", *words, *options])


@dataclass(frozen=True, slots=True)
class InferredTasks:
    """Candidate tasks, one at least and the likeliest first."""

    candidates: tuple[InferredTask, ...]
    is_sure: bool = True

    @property
    def best(self) -> InferredTask:
        """The likeliest."""
        return self.candidates[0]
