"""Options of commands: how values are read, those of a search, and those of other tools."""

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Parameter, Token, convert

from regard.checks import check_finite
from regard.errors import SettingError

if TYPE_CHECKING:
    from regard.config import JsonValue
    from regard.tasks import TaskEntry

# Settings, and the names that other tools have for them.
_SETTINGS = {
    "training.learning_rate": "lr",
    "training.batch_tokens": "batch_size per_device_train_batch_size max_tokens",
    "training.updates": "max_steps num_steps steps max_updates max_update",
    "training.epochs": "max_epochs max_epoch num_epochs num_train_epochs n_epochs max_num_epochs",
    "training.warmup": "warmup_steps warmup_updates",
    "training.accumulate": "gradient_accumulation_steps grad_accum update_freq",
    "training.validate_every": "eval_steps checkpoint_interval save_interval_updates",
    "training.clip_norm": "max_grad_norm clip",
    "training.patience": "early_stopping",
    "training.optimizer": "optim",
    "training.schedule": "scheduler lr_scheduler",
    "training.seed": "random_seed",
    "model.type": "model arch",
    "model.model_dim": "hidden_size d_model",
    "model.num_heads": "n_heads nhead",
    "model.num_layers": "n_layers layers",
    "tokenizer.vocab_size": "vocab",
    "data.max_length": "max_len max_length max_seq_length",
    "data.source_language": "src_lang",
    "data.target_language": "tgt_lang",
}
# And what is no setting; of ``train``, ``look``, ``predict``, and of every command.
_TRAIN = {
    "as --run FOLDER": "output out o output_dir save_dir save run_dir",
    "as --processes N": "workers num_workers num_gpus gpus nproc nproc_per_node",
    "before the files: regard train RECIPE FILES": "config recipe c",
    "as files: regard train SOURCE TARGET": "source target src tgt train_src train_tgt",
    "as files: regard train FILES": "data input train file train_file i",
}
_LOOK = {
    "as --model FOLDER": "model_name_or_path model_name checkpoint path",
    "as it is: regard look RUN TEXT": "text sentence prompt input_text t",
    "as --attribute METHOD": "method attribution attribution_method m",
    "as --not WORD": "against contrast foil wrong",
    "as --layers NUMBERS, from 0": "include_layers layer",
    "as --heads NUMBERS, from 0": "include_heads head",
}
_PREDICT = {
    "as --beam-size N": "beam beams num_beams",
    "as --length-penalty NUMBER": "lenpen alpha",
    "as --n-best N": "num_return_sequences num_hypotheses",
    "as --max-tokens N, of language models; a translation ends by itself": (
        "max_length max_len max_len_b max_new_tokens max_decoding_length"
    ),
    "as --method sample": "do_sample sampling",
    "as --min-length N": "min_len min_new_tokens",
}
_EVERYWHERE = {"as --device cuda": "gpu cuda use_gpu", "as --device cpu": "cpu no_cuda no_gpu"}
_OF_COMMAND = {"train": _TRAIN, "look": _LOOK, "predict": _PREDICT}
_FILES = ("source", "target", "src", "data", "input", "file", "i")
# Sections in which a setting of that name is looked for.
_SECTIONS = ("training", "model", "tokenizer", "data", "decoding", "head")
_WHOLE = re.compile(r"[+-]?\d{1,18}")


def read_value(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option, as its annotation has it: no number is rounded."""
    parts = _parts(kind)
    if isinstance(tokens, Sequence) and str not in parts:
        for number in {int, float} & set(parts):
            for token in tokens:
                _check_number(token.keyword or "the value", token.value, number)
    return convert(kind, tokens)


def _parts(kind: object) -> Sequence[object]:
    """The types of a value: of an optional one, and of each one of a tuple."""
    if get_origin(kind) in (tuple, Union, types.UnionType):
        return [part for each in get_args(kind) for part in _parts(each)]
    return [kind]


def _check_number(name: str, text: str, kind: object) -> None:
    if kind is int:
        if _WHOLE.fullmatch(text.strip()) is None:
            raise SettingError(f"{name} must be a whole number; got {text[:40]!r}.")
        return
    try:
        value = float(text)
    except ValueError:
        raise SettingError(f"{name} must be a number; got {text[:40]!r}.") from None
    check_finite(name, value)


# What holds for all options: a flag has no negative, and values are read as above.
OPTIONS = Parameter(negative=(), converter=read_value)
# An option that ``--help`` leaves to the pages.
UNLISTED = Parameter(show=False)


def option_here(option: str, value: str | None, command: str) -> str | None:
    """How an option of another tool, such as ``--lr``, is given here; None if it is unknown."""
    name = option.lstrip("-").replace("-", "_").casefold()
    way = _way(name, _EVERYWHERE)
    way = way or _way(name, _OF_COMMAND.get(command, {}))
    if command not in ("train", "look") and name in _FILES:
        way = way or f"as a file: regard {command} … FILE"
    if way is None and command in ("train", "data"):
        setting = _setting(name, _SECTIONS if command == "train" else ("data",))
        way = None if setting is None else f"as --set {setting}={value or 'VALUE'}"
        if setting == "training.batch_tokens" and name != "max_tokens":
            way = f"in tokens, as --set {setting}=4096"
    return None if way is None else f"{option} must be given {way}."


def _way(name: str, ways: Mapping[str, str]) -> str | None:
    return next((way for way, names in ways.items() if name in names.split()), None)


def _setting(name: str, among: Sequence[str]) -> str | None:
    from regard.tasks import TASKS

    for setting, names in _SETTINGS.items():
        if name in names.split() and setting.partition(".")[0] in among:
            return setting
    described = sections(TASKS)
    for section in among:
        for _, config in described[section]:
            if any(field.name == name for field in fields(config)):
                return f"{section}.{name}"
    return None


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
    avoid: Annotated[tuple[str, ...] | None, UNLISTED] = None
    max_tokens: int | None = None
    one_line: Annotated[bool | None, UNLISTED] = None

    def changes(self) -> "dict[str, JsonValue]":
        """Given options, by the names of ``[decoding]``."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def flags(self) -> "dict[str, JsonValue]":
        """Given options, by their names on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in self.changes().items()}


# Nothing said: everything as the recipe says.
AS_THE_RECIPE_SAYS = DecodingOptions()


def sections(kinds: Mapping[str, "TaskEntry"]) -> dict[str, list[tuple[str, type]]]:
    """For each table of recipes of these tasks, its headings and the classes that read it."""
    from regard.training import TrainingConfig

    names = ("data", "tokenizer", "model", "head", "training", "decoding")
    tasks: dict[str, dict[tuple[str, type], list[str]]] = {name: {} for name in names}
    for task, kind in kinds.items():
        single = {name: getattr(kind, name) for name in ("data", "tokenizer", "head", "decoding")}
        rows = [(name, f"[{name}]", config) for name, config in single.items() if config]
        rows += [
            ("model", f'[model] with type = "{name}"', architecture.config)
            for name, architecture in kind.models.items()
        ]
        for name, heading, config in [*rows, ("training", "[training]", TrainingConfig)]:
            tasks[name].setdefault((heading, config), []).append(task)
    return {
        name: [
            (heading if len(of) == len(kinds) else f"{heading} of {', '.join(of)}", config)
            for (heading, config), of in described.items()
        ]
        for name, described in tasks.items()
        if described
    }
