"""A model and its tokenizer from a Hugging Face folder: no code is run, nothing downloaded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.devices import build_within, is_finite
from regard.errors import DataError, SettingError
from regard.interop.checkpoint_settings import CONFIG
from regard.interop.checkpoints import INDEX, WEIGHTS, read_config, refuse_pickled

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

LoadedT = TypeVar("LoadedT")

# Far more than any model has; those of transformers are made without numbers at first.
_MOST_TENSORS, _MOST_NUMBERS = 100_000, 2**50
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "source.spm",
)


def load_folder(
    name: str | Path, *, allow_download: bool = False
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """The model and the tokenizer in a folder, as ``save_pretrained`` of both writes it.

    Weights are read from safetensors only, in their own precision, and code that comes with a model
    is never run. An encoder or a decoder comes without its head, whose attention it has none of.

    Args:
        name: The folder.
        allow_download: Whether a name that is no folder is fetched from the Hugging Face hub.

    Raises:
        DataError: The folder, its config, weights or tokenizer are missing or cannot be used.
        SettingError: transformers is not installed.

    Example:
        >>> load_folder("bert-base-chinese")
        Traceback (most recent call last):
        regard.errors.DataError: model must be a folder with a Hugging Face model; got 'bert-base-chinese', which is no folder here. Nothing is downloaded unless you ask: --allow-download, or allow_download=True.
    """  # noqa: E501
    _check_installed()
    folder = Path(name)
    if folder.is_dir():
        _check_files(folder)
    elif not allow_download:
        raise DataError(
            f"model must be a folder with a Hugging Face model; got {str(name)!r}, which is no "
            "folder here. Nothing is downloaded unless you ask: --allow-download, or "
            "allow_download=True."
        )
    options = {"local_files_only": not allow_download, "trust_remote_code": False}
    with _quietly():
        if folder.is_dir():
            read_config(folder)
        config = _loaded("config", name, _config, options)
        tokenizer = _loaded("tokenizer", name, _tokenizer, options)
        model = _loaded("model", name, lambda where, more: _model(where, config, more), options)
    for part, weight in model.named_parameters():
        if not is_finite(weight):
            raise DataError(f"{name} must hold finite weights; got NaN or infinity in {part}.")
    model.eval()  # type: ignore[no-untyped-call]
    return model, tokenizer


def _config(name: str, options: dict[str, bool]) -> "PreTrainedConfig":
    from transformers import AutoConfig

    config: PreTrainedConfig = AutoConfig.from_pretrained(name, **options)
    return config


def _tokenizer(name: str, options: dict[str, bool]) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name, **options)


def _model(name: str, config: "PreTrainedConfig", options: dict[str, bool]) -> "PreTrainedModel":
    from transformers import AutoModel, AutoModelForSeq2SeqLM

    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModel
    model: PreTrainedModel
    refusal = DataError(f"config.json must describe a model of at most {_MOST_TENSORS:,} tensors.")
    model, found = build_within(
        lambda: kind.from_pretrained(
            name, dtype="auto", use_safetensors=True, output_loading_info=True, **options
        ),
        tensors=_MOST_TENSORS,
        numbers=_MOST_NUMBERS,
        refusal=refusal,
    )
    # Heads that were not trained have no attention; whatever else is missing does the looking.
    missing = sorted(key for key in found["missing_keys"] if "pooler" not in key)
    if missing:
        raise DataError(
            f"weights must be those of the model; got none for {len(missing)} of its parameters, "
            f"such as {missing[0]}. Its attention would be random."
        )
    return model


def _loaded(
    what: str,
    name: str | Path,
    load: Callable[[str, dict[str, bool]], LoadedT],
    options: dict[str, bool],
) -> LoadedT:
    """Call a loader of transformers; its errors become ours."""
    try:
        return load(str(name), options)
    except DataError:
        raise
    except Exception as error:  # of all kinds: transformers and its tokenizers raise what they like
        said = " ".join(str(error).split())
        said = said if len(said) <= 200 else f"{said[:200]}…"
        raise DataError(
            f"{what} must be one that transformers can load without code of its own; got, in "
            f"{name}: {type(error).__name__}: {said}"
        ) from error


def _check_installed() -> None:
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise SettingError(
            "transformers must be installed to look at a Hugging Face model; got none. "
            "Install it: pip install 'regard[interop]'."
        ) from error


def _check_files(folder: Path) -> None:
    """See that a folder has all three parts, before transformers says it in many words.

    Raises:
        DataError: One is missing, or the weights are pickled.
    """
    if not (folder / CONFIG).is_file():
        raise DataError(
            f"{folder} must hold a Hugging Face model; got no config.json in it. "
            "Save one there: model.save_pretrained(folder)."
        )
    if not any((folder / name).is_file() for name in (WEIGHTS, INDEX)):
        refuse_pickled(folder)
        raise DataError(
            f"{folder} must hold the model's weights; got no model.safetensors in it. "
            "Save them there: model.save_pretrained(folder)."
        )
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise DataError(
            f"{folder} must hold the model's tokenizer; got no tokenizer.json or vocabulary in it. "
            "Save it there: tokenizer.save_pretrained(folder)."
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the progress bars and advice of transformers, which are not about looking."""
    from transformers.utils import logging

    level, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
