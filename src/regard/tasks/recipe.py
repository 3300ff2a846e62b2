"""A recipe: everything that a training depends on, read from TOML and saved with the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from regard.checks import check_at_least
from regard.choices import choose, nearest
from regard.config import as_table, assign, build, read_toml
from regard.errors import SettingError
from regard.models import MODELS
from regard.text import TokenizerConfig

SECTIONS = ("data", "tokenizer", "model", "training", "decoding")
PHRASEBOOK = "phrasebook"


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Where the sentence pairs are, and what they are.

    Attributes:
        train: One TSV or JSONL file, or two files of lines (source, target), or ``phrasebook``.
        valid: The same, for validation; empty takes a few pairs from the training text.
        test: The same, for ``evaluate``.
        source_language: Code of the source's language (``zh``), for metrics and pages.
        target_language: Code of the target's language (``en``).
        columns: TSV only: columns of source, target and further references, from 1.
        max_length: Longest sentence, in tokens, that training takes.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).
        on_long: The same for a sentence beyond max_length.
        source_end: Whether the model reads an end token after the source. Without it every place
            that can be looked at is a piece of the sentence, which suits alignments.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    source_language: str | None = None
    target_language: str | None = None
    columns: tuple[int, ...] = ()
    max_length: int = 256
    on_bad_line: Literal["error", "skip"] = "error"
    on_long: Literal["error", "skip"] = "skip"
    source_end: bool = True

    def __post_init__(self) -> None:
        check_at_least("max_length", self.max_length, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingConfig:
    """How a translation is searched for.

    Attributes:
        beam_size: Hypotheses kept at each step; 1 is greedy search.
        length_penalty: Alpha of ((5 + length) / 6) ** alpha, which scores are divided by.
        max_ratio: Longest output as a multiple of the source's tokens, ten tokens added.
        batch_tokens: Source tokens translated at once, beam included.
    """

    beam_size: int = 5
    length_penalty: float = 0.6
    max_ratio: float = 2.0
    batch_tokens: int = 16384

    def __post_init__(self) -> None:
        check_at_least("beam_size", self.beam_size, 1, cure="Use 1 for greedy search.")
        check_at_least("length_penalty", self.length_penalty, 0)
        check_at_least("max_ratio", self.max_ratio, 0)
        check_at_least("batch_tokens", self.batch_tokens, 1)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that a training depends on.

    Attributes:
        task: What is learned: ``translation``.
        data: Where the text is.
        tokenizer: How it is cut into pieces.
        model_type: Name of the architecture.
        model: Its settings.
        training: The ``[training]`` table, which training reads.
        decoding: How outputs are searched for.
        folder: What relative paths in ``data`` start from.
    """

    task: str = "translation"
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model_type: str = "transformer"
    model: Any = None
    training: Mapping[str, Any] = field(default_factory=dict)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    folder: Path = field(default_factory=Path)

    def files(self, split: str) -> list[Path]:
        """The files of ``train``, ``valid`` or ``test``, in the recipe's folder; none if unset."""
        names = getattr(self.data, split)
        listed = [names] if isinstance(names, str) else names
        return [self.folder / name for name in listed if name]

    @property
    def uses_phrasebook(self) -> bool:
        """Whether the text is the built-in phrasebook."""
        return self.data.train in (PHRASEBOOK, (PHRASEBOOK,))

    def table(self) -> dict[str, Any]:
        """The recipe as a nested table, ready for TOML; file names made absolute."""
        data = as_table(self.data)
        if not self.uses_phrasebook:
            for split in ("train", "valid", "test"):
                data[split] = [str(path.resolve()) for path in self.files(split)]
        return {
            "task": self.task,
            "data": data,
            "tokenizer": as_table(self.tokenizer),
            "model": {"type": self.model_type, **as_table(self.model)},
            "training": dict(self.training),
            "decoding": as_table(self.decoding),
        }


def read_recipe(path: Path, settings: Sequence[str] = ()) -> Recipe:
    """The recipe in a TOML file.

    Args:
        path: The file.
        settings: ``key.path=value`` texts that go over what the file says.

    Raises:
        SettingError: The file cannot be read or is no TOML, or a key or value is not known.
    """
    try:
        table = read_toml(path)
    except OSError as error:
        raise SettingError(f"{path} must be a recipe; got {error.strerror!r}.") from error
    assign(table, settings)
    return recipe_from_table(table, folder=path.parent)


def recipe_from_table(table: Mapping[str, Any], *, folder: Path | None = None) -> Recipe:
    """The recipe in a nested table, every key and value but ``[training]``'s checked.

    Raises:
        SettingError: A section, key or value is not known.

    Example:
        >>> recipe_from_table({"task": "translation", "modle": {}})
        Traceback (most recent call last):
        regard.errors.SettingError: modle is not a section of a recipe. Did you mean model?
    """
    for name, section in table.items():
        if name == "task":
            continue
        if name not in SECTIONS:
            hint = nearest(name, ("task", *SECTIONS))
            cure = f"Did you mean {hint}?" if hint else f"There are: task, {', '.join(SECTIONS)}."
            raise SettingError(f"{name} is not a section of a recipe. {cure}")
        if not isinstance(section, Mapping):
            raise SettingError(f"{name} must be a table: [{name}]; got {section!r}.")
    task = table.get("task", "translation")
    choose("task", task, {"translation": None})
    model_table = dict(table.get("model", {}))
    model_type = model_table.pop("type", "transformer")
    config, _ = choose("model.type", model_type, MODELS)
    return Recipe(
        task=task,
        data=build(DataConfig, table.get("data", {}), where="data"),
        tokenizer=build(TokenizerConfig, table.get("tokenizer", {}), where="tokenizer"),
        model_type=model_type,
        model=build(config, model_table, where="model"),
        training=dict(table.get("training", {})),
        decoding=build(DecodingConfig, table.get("decoding", {}), where="decoding"),
        folder=folder or Path(),
    )


def with_training(recipe: Recipe, training: Mapping[str, Any]) -> Recipe:
    """The recipe with a resolved ``[training]`` table."""
    return replace(recipe, training=dict(training))
