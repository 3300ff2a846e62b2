"""Options of every command: how their values are read, and what those of other tools are here."""

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Union, get_args, get_origin

from cyclopts import Parameter, Token, convert

from regard.checks import check_finite
from regard.errors import SettingError

# Settings by names that other tools have for them.
_SETTINGS = {
    "lr": "training.learning_rate",
    "batch_size": "training.batch_tokens",
    "max_steps": "training.updates",
    "num_steps": "training.updates",
    "steps": "training.updates",
    "max_updates": "training.updates",
    "max_epochs": "training.epochs",
    "num_epochs": "training.epochs",
    "num_train_epochs": "training.epochs",
    "n_epochs": "training.epochs",
    "warmup_steps": "training.warmup",
    "warmup_updates": "training.warmup",
    "gradient_accumulation_steps": "training.accumulate",
    "grad_accum": "training.accumulate",
    "max_grad_norm": "training.clip_norm",
    "clip": "training.clip_norm",
    "early_stopping": "training.patience",
    "optim": "training.optimizer",
    "scheduler": "training.schedule",
    "lr_scheduler": "training.schedule",
    "random_seed": "training.seed",
    "model": "model.type",
    "arch": "model.type",
    "hidden_size": "model.model_dim",
    "d_model": "model.model_dim",
    "n_heads": "model.num_heads",
    "nhead": "model.num_heads",
    "n_layers": "model.num_layers",
    "layers": "model.num_layers",
    "vocab": "tokenizer.vocab_size",
    "max_len": "data.max_length",
    "max_length": "data.max_length",
    "max_seq_length": "data.max_length",
    "src_lang": "data.source_language",
    "tgt_lang": "data.target_language",
}
# And what is no setting; of ``train`` alone, and of every command.
_TRAIN: dict[tuple[str, ...], str] = {
    ("output", "out", "o", "output_dir", "save_dir", "save", "run_dir"): "as --run FOLDER",
    ("workers", "num_workers", "num_gpus", "gpus", "nproc", "nproc_per_node"): "as --processes N",
    ("config", "recipe", "c"): "before the files: regard train RECIPE FILES",
    ("src", "tgt", "train_src", "train_tgt"): "as files: regard train SOURCE TARGET",
    ("data", "input", "train", "file", "train_file", "i"): "as files: regard train FILES",
}
_EVERYWHERE: dict[tuple[str, ...], str] = {
    ("gpu", "cuda", "use_gpu"): "as --device cuda",
    ("cpu", "no_cuda", "no_gpu"): "as --device cpu",
}
_FILES = ("src", "data", "input", "file", "i")
# Sections in which a setting of that name is looked for.
_SECTIONS = ("training", "model", "tokenizer", "data", "decoding", "head")
_WHOLE = re.compile(r"[+-]?\d{1,18}")


def read_value(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option, as its annotation has it: no number is rounded.

    Raises:
        SettingError: It must be a number, and is another, none, or not finite.
    """
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
    """An option of other tools in this one's words; None if it is known nowhere.

    Args:
        option: As it was written, such as ``--lr``.
        value: What it was followed by, if anything.
        command: That it was written for.

    Example:
        >>> option_here("--epochs", "3", "train")
        '--epochs must be given as --set training.epochs=3.'
        >>> option_here("--gpu", None, "predict")
        '--gpu must be given as --device cuda.'
    """
    name = option.lstrip("-").replace("-", "_").casefold()
    way = _way(name, _EVERYWHERE)
    if command == "train":
        way = way or _way(name, _TRAIN)
    elif name in _FILES:
        way = way or f"as a file: regard {command} … FILE"
    if way is None and command in ("train", "data"):
        setting = _setting(name, _SECTIONS if command == "train" else ("data",))
        way = None if setting is None else f"as --set {setting}={value or 'VALUE'}"
        if setting == "training.batch_tokens":
            way = f"in tokens, as --set {setting}=4096"
    return None if way is None else f"{option} must be given {way}."


def _way(name: str, ways: Mapping[tuple[str, ...], str]) -> str | None:
    return next((way for names, way in ways.items() if name in names), None)


def _setting(name: str, among: Sequence[str]) -> str | None:
    from regard.cli.settings import sections
    from regard.tasks import TASKS

    if name in _SETTINGS and _SETTINGS[name].partition(".")[0] in among:
        return _SETTINGS[name]
    described = sections(TASKS)
    for section in among:
        for _, config in described[section]:
            if any(field.name == name for field in fields(config)):
                return f"{section}.{name}"
    return None
