"""Options of commands: how values are read, those of a search, and those of other tools."""

import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, make_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from cyclopts import Parameter, Token, convert

from regard.checks import check_finite, check_path
from regard.errors import SettingError
from regard.inference.options import AnswerOptions
from regard.viewer.options import LookOptions, given

if TYPE_CHECKING:
    from regard.tasks import TaskEntry

OptionsT = TypeVar("OptionsT", AnswerOptions, LookOptions)

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
# And of options that are no settings; of ``train``, ``look``, ``predict``, and of every command.
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
    if isinstance(tokens, Sequence) and Path in parts:
        for token in tokens:
            check_path(token.keyword or "the argument", token.value)
    if isinstance(tokens, Sequence) and str not in parts:
        for number in {int, float} & set(parts):
            for token in tokens:
                _check_number(token.keyword or "the value", token.value, number)
    return convert(kind, tokens)


def _parts(kind: object) -> Sequence[object]:
    """The types of a value: of an optional one, and of each one of a tuple."""
    if get_origin(kind) in (tuple, Union, types.UnionType):
        return [part for member in get_args(kind) for part in _parts(member)]
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


# Defaults of all options: a flag has no negative, and values are read as above.
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


class Flags:
    """Flags of the command line for the fields of a class of options."""

    def given(self) -> dict[str, Any]:
        """Given values, by the names of the fields."""
        return given(self)

    def flags(self, among: Collection[str] | None = None) -> dict[str, object]:
        """Given values, by their names on the command line, of some fields or of all."""
        given = {n: v for n, v in self.given().items() if among is None or n in among}
        return {_NAMES.get(n, f"--{n.replace('_', '-')}"): v for n, v in given.items()}

    def options(self, kind: type[OptionsT]) -> OptionsT:
        """The options, those that are typed as one word taken apart."""
        given = self.given()
        return kind(**given | {n: _READ[n](n, given[n]) for n in given.keys() & _READ.keys()})


def flags_of(
    kind: type,
    *,
    without: Collection[str] = (),
    unlisted: Collection[str] = (),
    typed: Mapping[str, str] = MappingProxyType({}),
) -> type[Flags]:
    """Make the flags of a class of options; ``--help`` leaves out those that are unlisted."""
    hints, rows = get_type_hints(kind), []
    for field in fields(kind):
        hint: Any = str | None if field.name in _READ else hints[field.name]
        extras: dict[str, Any] = {"show": field.name not in unlisted}
        extras |= {"name": _NAMES[field.name]} if field.name in _NAMES else {}
        extras |= {"help": typed[field.name]} if field.name in typed else {}
        if hint is bool:
            extras["show_default"] = False
        if field.name not in without:
            rows.append((field.name, Annotated[hint, Parameter(**extras)], field.default))
    made = make_dataclass(f"{kind.__name__}Flags", rows, bases=(Flags,), frozen=True, kw_only=True)
    made.__module__, made.__doc__ = __name__, kind.__doc__
    return Parameter(name="*")(made)


def numbers_of(name: str, text: str) -> list[int]:
    """The numbers that a text such as ``0,2-4`` names, in order and once each."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if last < first:
            raise SettingError(
                f"--{name} must be numbers from 0 and ranges of them, such as 0,2-4; got {text!r}."
            )
        numbers.update(range(first, last + 1))
    return sorted(numbers)


def heads_of(name: str, text: str) -> list[tuple[int, int]]:
    """The heads that a text such as ``0.1,3.5`` names."""
    if not re.fullmatch(r"\d{1,6}\.\d{1,6}(,\d{1,6}\.\d{1,6})*", text):
        raise SettingError(f"--{name} must be heads LAYER.HEAD, such as 0.1,3.5; got {text!r}.")
    layers_and_heads = [one.split(".") for one in text.split(",")]
    return [(int(layer), int(head)) for layer, head in layers_and_heads]


def _scores_of(name: str, text: str) -> list[tuple[int, ...]]:
    """The scores that a text such as ``3.5,3.5:7.2`` names."""
    one = r"\d{1,6}\.\d{1,6}(:\d{1,6}\.\d{1,6})?"
    if not re.fullmatch(f"{one}(,{one})*", text):
        raise SettingError(
            f"--{name} must be LAYER.HEAD or LAYER.HEAD:QUERY.KEY, such as 3.5,3.5:7.2; got "
            f"{text!r}."
        )
    return [tuple(map(int, re.findall(r"\d+", one))) for one in text.split(",")]


def _methods_of(name: str, text: str) -> Sequence[str]:
    """The methods that a text such as ``rollout,leave-one-out`` names."""
    from regard.interop.pages.explaining import methods_named

    return methods_named(text) or []


_PART = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")
# Options that are typed as one word, and their parsers.
_READ: dict[str, Callable[[str, str], Any]] = {
    "layers": numbers_of,
    "heads": numbers_of,
    "neurons": heads_of,
    "scores": _scores_of,
    "circuits": heads_of,
    "attribute": _methods_of,
}
_NAMES = {"against": "--not"}
# Help on the typed form of some options of a look.
_TYPED = {
    "layers": "Which layers, counted from 0: 3 or 0,2 or 4-7. The page counts from 1.",
    "attribute": (
        "How tokens contribute: `gradient-times-input`, `integrated-gradients`, `leave-one-out`, "
        "`rollout`, `attention-gradient`, or several; `all`; `none`."
    ),
    "beam_size": "Hypotheses at each step of a run's search.",
    "neurons": "Heads whose queries and keys the page has: 3.5 or 0.1,3.5 (from 0).",
    "circuits": "Heads whose circuits the page has: 3.5 or 0.1,3.5.",
    "scores": (
        "Scores taken apart: 3.5:7.2 (layer.head:query.key, from 0), or 3.5 for the head's "
        "strongest link."
    ),
}
_UNLISTED = (
    *("length_penalty", "coverage_penalty", "min_length", "top_k", "repetition_penalty"),
    *("no_repeat_ngram", "prefix", "avoid", "one_line", "max_ratio"),
)

if TYPE_CHECKING:
    AnswerFlags: TypeAlias = Flags
    SearchFlags: TypeAlias = Flags
    LookFlags: TypeAlias = Flags
else:
    AnswerFlags = flags_of(AnswerOptions, unlisted=_UNLISTED)
    # Of examples that are measured there is one answer, and no attention is written.
    SearchFlags = flags_of(
        AnswerOptions, without=("n_best", "attention", "layers"), unlisted=_UNLISTED
    )
    LookFlags = flags_of(LookOptions, typed=_TYPED)

# Nothing said: everything as the recipe says.
ANSWERED_BY_RECIPE, SEARCHED_BY_RECIPE, LOOKED_AT_WHOLE = AnswerFlags(), SearchFlags(), LookFlags()


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
