"""A model and its tokenizer from a Hugging Face folder: no code is run, nothing downloaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from regard.devices.memory import build_within, is_finite
from regard.errors import DataError, SettingError
from regard.interop.checkpoints.layout import CONFIG
from regard.interop.checkpoints.models import INDEX, WEIGHTS, read_config, refuse_pickled
from regard.text import Piece
from regard.text.reading.pictures import check_pillow

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

LoadedT = TypeVar("LoadedT")

# Far more than any model has; those of transformers are made without numbers at first.
_MOST_TENSORS, _MOST_NUMBERS = 100_000, 2**50
# Endings of the names of models with a head that is used here.
_HEADS = (
    "ForCausalLM",
    "LMHeadModel",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForImageClassification",
    "ForImageClassificationWithTeacher",
)
_PROCESSOR = "preprocessor_config.json"
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


def load_folder(name: str | Path, *, allow_download: bool = False) -> "tuple[PreTrainedModel, Any]":
    """Load the model and the tokenizer of a folder, as ``save_pretrained`` of both writes it.

    A model that reads pictures has an image processor in the tokenizer's place.

    Weights are read from safetensors only, in their own precision, and code that comes with a model
    is never run. A model comes with the head that its config names, if it predicts tokens or the
    class of a text or a picture; else without one.

    Args:
        name: The folder.
        allow_download: Whether a name that is no folder is fetched from the Hugging Face hub.

    Raises:
        DataError: The folder, its config, weights or tokenizer are missing or cannot be used.
        SettingError: transformers is not installed, or Pillow for a model that reads pictures.

    Example:
        >>> load_folder("bert-base-chinese")
        Traceback (most recent call last):
        regard.errors.DataError: model must be a folder with a Hugging Face model; got 'bert-base-chinese', which is no folder here. Nothing is downloaded unless you ask: --allow-download, or allow_download=True.
    """  # noqa: E501
    _check_installed("look at a Hugging Face model")
    folder = Path(name)
    if folder.is_dir():
        _check_files(folder)
    elif not allow_download:
        raise DataError(
            f"model must be a folder with a Hugging Face model; got {str(name)!r}, which is no "
            "folder here. Nothing is downloaded unless you ask: --allow-download, or "
            "allow_download=True."
        )
    from transformers import MODEL_MAPPING, AutoConfig, AutoImageProcessor, AutoTokenizer

    options = {"local_files_only": not allow_download, "trust_remote_code": False}
    with _quietly():
        if folder.is_dir():
            read_config(folder)
        config = _load("config", name, AutoConfig.from_pretrained, options)
        kind = MODEL_MAPPING.get(type(config), None)
        is_vision = getattr(kind, "main_input_name", None) == "pixel_values"
        if folder.is_dir():
            _check_reader(folder, is_vision=is_vision)
        if is_vision:
            check_pillow()
            load = partial(_load, "image processor", name, AutoImageProcessor.from_pretrained)
        else:
            load = partial(_load, "tokenizer", name, AutoTokenizer.from_pretrained)
        reader = load(options)
        model = _load("model", name, partial(_load_model, config), options)
    for parameter, weight in model.named_parameters():
        if not is_finite(weight):
            raise DataError(f"{name} must hold finite weights; got NaN or infinity in {parameter}.")
    model.eval()  # type: ignore[no-untyped-call]
    return model, reader


class CheckpointTokenizer:
    """Text to the ids that a checkpoint knows, and back.

    WordPiece (BERT), byte-level BPE (RoBERTa, GPT-2, BART) and sentencepiece (Marian), by
    transformers. Ids are the checkpoint's own, and so are those that begin and end a text: unlike
    those of ``regard.text`` they are not 0 to 3.

    Args:
        tokenizer: Of transformers; ``load`` makes one.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> from transformers import PreTrainedTokenizerFast
        >>> words = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> tokenizer = CheckpointTokenizer(PreTrainedTokenizerFast(tokenizer_object=words))
        >>> tokenizer.encode("the cat sat"), tokenizer.vocab_size, tokenizer.pad_id
        ([1, 2, 0], 3, None)
        >>> [(piece.text, piece.start, piece.end) for piece in tokenizer.pieces("the cat")]
        [('the', 0, 3), ('cat', 4, 7)]
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: str | Path) -> "CheckpointTokenizer":
        """The tokenizer in a folder; nothing is downloaded, and no code in it is run.

        Raises:
            DataError: There is none, or transformers cannot read it.
            SettingError: transformers is not installed.
        """
        _check_installed("read a checkpoint's tokenizer")
        if not Path(folder).is_dir():
            raise DataError(f"{folder} must be a folder with a tokenizer; got none.")
        from transformers import AutoTokenizer

        options = {"local_files_only": True, "trust_remote_code": False}
        return cls(_load("tokenizer", folder, AutoTokenizer.from_pretrained, options))

    @property
    def vocab_size(self) -> int:
        """Number of ids, added ones included."""
        return len(self._tokenizer)

    @property
    def pad_id(self) -> int | None:
        """Fills a batch up; None if nothing does, as in GPT-2."""
        return self._special("pad")

    @property
    def mask_id(self) -> int | None:
        """Says that a word is masked."""
        return self._special("mask")

    @property
    def bos_id(self) -> int | None:
        """Begins a text: [CLS], <s>."""
        return self._special("bos") if self._special("cls") is None else self._special("cls")

    @property
    def eos_id(self) -> int | None:
        """Ends a text: [SEP], </s>."""
        return self._special("sep") if self._special("eos") is None else self._special("eos")

    def encode(self, text: str, second: str | None = None) -> list[int]:
        """Return the ids of a text or a pair, with the special tokens around them."""
        ids: list[int] = self._tokenizer(text, second)["input_ids"]
        return ids

    def segments(self, text: str, second: str) -> list[int]:
        """Segment ids of a pair, 0 or 1; all 0 where a model has none."""
        encoded = self._tokenizer(text, second)
        segments: list[int] = encoded.get("token_type_ids", [0] * len(encoded["input_ids"]))
        return segments

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def pieces(self, text: str) -> list[Piece]:
        """Return the pieces of a text and their spans, without special tokens.

        Raises:
            SettingError: The tokenizer does not give positions, as Marian's does not.
        """
        if not self._tokenizer.is_fast:
            raise SettingError(
                "tokenizer must give the positions of its pieces; got "
                f"{type(self._tokenizer).__name__}, which does not."
            )
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [Piece(text[start:end].strip(), i, start, end) for i, (start, end) in pairs]

    def save(self, folder: str | Path) -> None:
        """Write it beside a checkpoint."""
        self._tokenizer.save_pretrained(str(folder))

    def _special(self, name: str) -> int | None:
        number: int | None = getattr(self._tokenizer, f"{name}_token_id", None)
        return number


def _load_model(config: "PreTrainedConfig", name: str, **options: bool) -> "PreTrainedModel":
    import transformers

    (named, *_) = config.architectures or [""]
    kind: Any = transformers.AutoModel
    if config.is_encoder_decoder:
        kind = transformers.AutoModelForSeq2SeqLM
    elif named.endswith(_HEADS):
        kind = getattr(transformers, named, kind)
    model, missing = _weighted(kind, name, options)
    if missing and named.endswith(_HEADS):  # of the head, it may be
        model, missing = _weighted(transformers.AutoModel, name, options)
    if missing:
        raise DataError(
            f"weights must be those of the model; got none for {len(missing)} of its parameters, "
            f"such as {missing[0]}. Its attention would be random."
        )
    return model


def _weighted(
    kind: Any, name: str, options: dict[str, bool]
) -> "tuple[PreTrainedModel, list[str]]":
    """A model, and the names of its parameters that the folder has no weights for."""
    refusal = DataError(f"config.json must describe a model of at most {_MOST_TENSORS:,} tensors.")
    model, loading = build_within(
        lambda: kind.from_pretrained(
            name, dtype="auto", use_safetensors=True, output_loading_info=True, **options
        ),
        tensors=_MOST_TENSORS,
        numbers=_MOST_NUMBERS,
        refusal=refusal,
    )
    # A pooler that was not trained has no attention.
    return model, sorted(key for key in loading["missing_keys"] if "pooler" not in key)


def _load(
    noun: str, name: str | Path, load: Callable[..., LoadedT], options: dict[str, bool]
) -> LoadedT:
    """Call a loader of transformers; its errors become ours."""
    try:
        return load(str(name), **options)
    except DataError:
        raise
    except Exception as error:  # transformers and its tokenizers raise errors of any class
        message = " ".join(str(error).split())
        message = message if len(message) <= 200 else f"{message[:200]}…"
        raise DataError(
            f"{noun} must be one that transformers can load without code of its own; got, in "
            f"{name}: {type(error).__name__}: {message}"
        ) from error


def _check_installed(purpose: str) -> None:
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise SettingError(
            f"transformers must be installed to {purpose}; got none. "
            "Install it: pip install 'regard[interop]'."
        ) from error


def _check_files(folder: Path) -> None:
    """Raise DataError if a part is missing, before transformers says it in many words."""
    if not (folder / CONFIG).is_file():
        raise _missing(folder, "a Hugging Face model", "config.json", "Save one there: model")
    if not any((folder / name).is_file() for name in (WEIGHTS, INDEX)):
        refuse_pickled(folder)
        raise _missing(folder, "the model's weights", WEIGHTS, "Save them there: model")


def _check_reader(folder: Path, *, is_vision: bool) -> None:
    """Raise DataError unless the folder says how a model's text or pictures are read."""
    if is_vision and not (folder / _PROCESSOR).is_file():
        part, cure = "the sizes of the model's pictures", "Save it there: image_processor"
        raise _missing(folder, part, _PROCESSOR, cure)
    if not is_vision and not any((folder / name).is_file() for name in _TOKENIZERS):
        name = "tokenizer.json or vocabulary"
        raise _missing(folder, "the model's tokenizer", name, "Save it there: tokenizer")


def _missing(folder: Path, part: str, name: str, cure: str) -> DataError:
    return DataError(
        f"{folder} must hold {part}; got no {name} in it. {cure}.save_pretrained(folder)."
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
