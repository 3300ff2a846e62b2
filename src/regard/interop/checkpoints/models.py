"""Checkpoints in Hugging Face's layouts, read into our models and written from them.

A folder holds ``config.json`` and ``model.safetensors``. Nothing is unpickled, no code that comes
with a model is run, and transformers need not be installed.
"""

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from regard.checks import choose
from regard.config import JsonValue, parse_json, read_file
from regard.devices.memory import build_within, is_finite
from regard.errors import DataError, excerpt
from regard.files import write_file
from regard.interop.checkpoints.bert_relatives import BERT_RELATIVES
from regard.interop.checkpoints.decoders import DECODERS
from regard.interop.checkpoints.encoders import ENCODERS
from regard.interop.checkpoints.layout import CONFIG, Layout, Table
from regard.interop.checkpoints.seq2seq import SEQ2SEQ

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_JSON = 2**26  # bytes
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")

LAYOUTS = {**ENCODERS, **BERT_RELATIVES, **DECODERS, **SEQ2SEQ}
_WRITTEN = {name: layout for name, layout in LAYOUTS.items() if layout.describe is not None}
LayoutName = Literal[
    "bart", "bert", "blenderbot", "gpt2", "gpt_neox", "llama", "marian", "pegasus", "roberta"
]


@dataclass(frozen=True)
class PretrainedModel:
    """A model that others trained.

    Attributes:
        model: It, in evaluation mode.
        layout: The layout it came in.
        settings: Its ``config.json``.
        absent: Our parameters that the files do not hold, such as those of a head that was not
            trained; they begin anew.
        unused: Tensors of the files that have no place here.
    """

    model: nn.Module
    layout: str
    settings: dict[str, JsonValue]
    absent: tuple[str, ...]
    unused: tuple[str, ...]


def load_checkpoint(folder: str | Path) -> PretrainedModel:
    """Load a checkpoint of Hugging Face's as one of our models, with the same logits.

    ALBERT, BERT, DistilBERT, ELECTRA and RoBERTa become a ``MaskedLanguageModel``, or with BERT's
    head for labels of texts or of tokens a ``Classifier`` or ``Tagger``; GPT-2, GPT-NeoX, Llama,
    Mistral and Qwen2 a ``Decoder``; BART, Blenderbot, Marian and Pegasus a ``Transformer``. Weights
    become float32. Layers of ALBERT, which share their weights, have each its own here.

    Raises:
        DataError: A file is missing or damaged, or its tensors are not of the config's sizes; or
            the weights are pickled.
        SettingError: The family, or an option of it, has no model here.

    Example:
        >>> import tempfile
        >>> from regard.models import Decoder, DecoderConfig
        >>> config = DecoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> model, folder = Decoder(config, vocab_size=11).eval(), tempfile.mkdtemp()
        >>> save_checkpoint(model, folder, layout="gpt2")
        >>> ids, checkpoint = torch.tensor([[4, 5, 6]]), load_checkpoint(folder)
        >>> checkpoint.layout, checkpoint.settings["n_embd"], checkpoint.absent, checkpoint.unused
        ('gpt2', 8, (), ())
        >>> torch.equal(checkpoint.model(ids), model(ids))
        True
    """
    folder = Path(folder)
    settings = read_config(folder)
    name = settings.get("model_type")
    layout = choose("model_type", str(name), LAYOUTS)
    tensors = _read_weights(folder)
    if not any(name.startswith(layout.prefix) for name in tensors):  # of a body alone
        tensors = {layout.prefix + name: tensor for name, tensor in tensors.items()}
    model = _build(layout, settings, tensors, folder)
    absent = _fill(model, layout, tensors, folder)
    used = {name for tensor_map in layout.tensors(model) for name in tensor_map.theirs}
    unused = sorted(
        name for name in tensors if name not in used and not name.endswith(layout.copies)
    )
    return PretrainedModel(model.eval(), str(name), settings, tuple(absent), tuple(unused))


def save_checkpoint(
    model: nn.Module,
    folder: str | Path,
    *,
    layout: LayoutName,
    settings: Table | None = None,
) -> None:
    """Write a model of ours as Hugging Face's ``from_pretrained`` reads it.

    Args:
        model: A ``MaskedLanguageModel`` for bert and roberta; for bert also a ``Tagger`` or
            ``Classifier`` with an ``Encoder``; a ``Decoder`` for gpt2, gpt_neox and llama; a
            ``Transformer`` for bart, blenderbot, marian and pegasus.
        folder: Where to; made if it is not there.
        layout: Whose names and options.
        settings: More of ``config.json``, such as ``eos_token_id``; sizes stay the model's.

    Raises:
        SettingError: The layout is unknown, or has no place for such a model.

    Example:
        >>> import tempfile
        >>> from regard.models import Decoder, DecoderConfig
        >>> config = DecoderConfig(model_dim=8, num_heads=2, num_layers=1, ffn_dim=16)
        >>> folder = Path(tempfile.mkdtemp())
        >>> save_checkpoint(Decoder(config, vocab_size=11), folder, layout="gpt2")
        >>> sorted(path.name for path in folder.iterdir())
        ['config.json', 'model.safetensors']
    """
    made = choose("layout", layout, _WRITTEN)
    assert made.describe is not None
    sizes = made.describe(model)
    parameters = dict(model.named_parameters())  # of tables that are one, the first name
    tensors: dict[str, Tensor] = {}
    for tensor_map in made.tensors(model):
        if tensor_map.ours in parameters:
            tensors |= tensor_map.write(parameters[tensor_map.ours].detach().cpu())
    table = {
        **(settings or {}),
        "tie_word_embeddings": True,
        "architectures": [made.architecture],
        **sizes,
        "model_type": layout,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / WEIGHTS, save(tensors, metadata={"format": "pt"}))
    text = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
    write_file(folder / CONFIG, text.encode())


def _build(
    layout: Layout, settings: Table, tensors: Mapping[str, Tensor], folder: Path
) -> nn.Module:
    """Build the model of a config, which must not be far larger than its weights."""
    numbers = sum(tensor.numel() for tensor in tensors.values())
    refusal = DataError(
        f"{folder / CONFIG} must describe the model of the weights beside it; got one of more than "
        f"their {len(tensors)} tensors of {numbers:,} numbers."
    )
    # Ours has each of their layers' tensors in several, and heads that they lack.
    most = {"tensors": 4 * len(tensors), "numbers": 2 * numbers}
    most = {name: layout.sharing * count for name, count in most.items()}
    try:
        return build_within(lambda: layout.build(settings), refusal=refusal, **most)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError, OverflowError) as error:
        raise DataError(
            f"{folder / CONFIG} must be the config of a model; it is not: {excerpt(str(error))}."
        ) from error


@torch.no_grad()
def _fill(model: nn.Module, layout: Layout, tensors: dict[str, Tensor], folder: Path) -> list[str]:
    """Copy a file's tensors into a model; returns our names that it has nothing for."""
    parameters = dict(model.named_parameters())
    absent = []
    for tensor_map in layout.tensors(model):
        if tensor_map.ours not in parameters:
            continue
        if missing := [name for name in tensor_map.theirs if name not in tensors]:
            if tensor_map.is_zero_where_absent:
                parameters[tensor_map.ours].zero_()
                continue
            if not tensor_map.ours.startswith(layout.optional):
                raise DataError(
                    f"{WEIGHTS} must hold {missing[0]}; got none. Is it a whole {layout.prefix}"
                    "checkpoint?"
                )
            absent.append(tensor_map.ours)
            continue
        for name in tensor_map.theirs:
            if not (tensors[name].is_floating_point() and is_finite(tensors[name].float())):
                raise DataError(
                    f"{folder} must hold finite weights; got NaN, infinity or "
                    f"{str(tensors[name].dtype).removeprefix('torch.')} in {name}."
                )
        names = ", ".join(tensor_map.theirs)
        try:
            tensor = tensor_map.read(tensors)
        except (RuntimeError, IndexError) as error:
            raise DataError(
                f"{names} must fit together; they do not. Is it a whole checkpoint?"
            ) from error
        shape = parameters[tensor_map.ours].shape
        if tensor.shape != shape:
            raise DataError(
                f"{names} must make {tuple(shape)}, as config.json says; "
                f"got {tuple(tensor.shape)}. Are both files of one model?"
            )
        parameters[tensor_map.ours].copy_(tensor)
    return absent


def read_config(folder: Path) -> dict[str, JsonValue]:
    """Read ``config.json`` of a folder."""
    path = folder / CONFIG
    if not path.is_file():
        raise DataError(
            f"{folder} must hold a Hugging Face checkpoint; got no {CONFIG} in it. "
            "Save one there: model.save_pretrained(folder)."
        )
    try:
        # Some models have an infinite limit in theirs.
        table = parse_json(read_file(path, most=_MOST_JSON), is_finite=False)
    except (ValueError, OSError) as error:
        raise DataError(f"{path} must hold JSON; got: {error}.") from error
    if not isinstance(table, dict):
        raise DataError(f"{path} must hold a table; got {type(table).__name__}.")
    return table


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder, from one file or from shards."""
    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        try:
            if not path.is_file():  # a device need not end
                raise FileNotFoundError(errno.ENOENT, "no file")
            tensors |= load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} must be a whole safetensors file; got: {error}.") from error
    # Checkpoints of BERT's own time have TensorFlow's names.
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    for old, new in renamed.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        try:
            index = parse_json(read_file(folder / INDEX, most=_MOST_JSON))
            names = set(cast("dict[str, dict[str, str]]", index)["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{folder / INDEX} must map tensors to files; it does not.") from error
        if strange := [name for name in names if Path(str(name)).name != name]:
            raise DataError(f"{folder / INDEX} must name files beside it; got {strange[0]!r}.")
        return sorted(folder / name for name in names)
    if not (folder / WEIGHTS).is_file():
        refuse_pickled(folder)
        raise DataError(f"{folder} must hold {WEIGHTS}; it does not. Is the folder complete?")
    return [folder / WEIGHTS]


def refuse_pickled(folder: Path) -> None:
    """Raise DataError if a folder holds weights that may run code when they are read."""
    pickled = sorted(path.name for kind in _PICKLED for path in folder.glob(kind))
    if pickled:
        raise DataError(
            f"weights must be safetensors; got {pickled[0]} in {folder}, a format that may run "
            "code when it is read. Where you trust it, load it with transformers once and "
            "save it again: model.save_pretrained(folder)."
        )
