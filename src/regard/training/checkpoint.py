"""Beginning with a checkpoint in Hugging Face's layout: BERT, RoBERTa or GPT-2 in a folder."""

from pathlib import Path

import torch
from torch import Tensor, nn

from regard.config import as_table
from regard.errors import DataError, SettingError
from regard.interop.checkpoints.encoders import encoder_of
from regard.interop.checkpoints.layout import CONFIG
from regard.interop.checkpoints.models import WEIGHTS, PretrainedModel, load_checkpoint
from regard.models import Decoder, Encoder
from regard.tasks.recipe import RecipeTable
from regard.text.tokenizers.checkpoint_pieces import borrow_pieces, mask_of

# What a checkpoint of each layout was trained to do, and the model of ours that it is.
_TASKS = {
    "bert": ("masked_language_modelling", "transformer"),
    "roberta": ("masked_language_modelling", "transformer"),
    "gpt2": ("language_modelling", "decoder"),
}


def is_checkpoint(path: Path) -> bool:
    """Whether a folder holds a model in Hugging Face's layout, whole or not."""
    return path.is_dir() and any((path / name).is_file() for name in (CONFIG, WEIGHTS))


def checkpoint_recipe(path: Path) -> RecipeTable:
    """Recipe settings of tokenizer and model that match the checkpoint."""
    checkpoint = load_checkpoint(path)
    if checkpoint.layout not in _TASKS:
        raise SettingError(
            f"training.pretrained must name a checkpoint of {', '.join(_TASKS)}; got one of "
            f"{checkpoint.layout} in {path}, which regard.interop.load_checkpoint reads."
        )
    task, model_type = _TASKS[checkpoint.layout]
    pieces = borrow_pieces(path)
    rows = len(_reader(checkpoint).embedding.weight)
    if max(pieces.theirs) >= rows:
        raise DataError(
            f"{path} must hold a tokenizer of the model's {rows:,} ids; got one with the id "
            f"{max(pieces.theirs):,}. Are both of one model?"
        )
    return {
        "task": task,
        "model": {"type": model_type, **as_table(_reader(checkpoint).config)},
        "tokenizer": {
            "type": "checkpoint",
            "vocab_size": pieces.vocab_size,
            "folder": str(path),
        },
    }


@torch.no_grad()
def checkpoint_reader(path: Path) -> dict[str, Tensor]:
    """Weights of the checkpoint's reader; embeddings in the order of our ids, then of the mask."""
    reader = _reader(load_checkpoint(path))
    order, mask = list(borrow_pieces(path).theirs), mask_of(path)
    order += [] if mask is None else [mask]
    table = reader.embedding.weight
    return {
        name: tensor[order] if tensor.data_ptr() == table.data_ptr() else tensor
        for name, tensor in reader.state_dict().items()
    }


def checkpoint_pooler(path: Path) -> dict[str, Tensor]:
    """The weights of the checkpoint's pooler; none if its files hold none."""
    checkpoint = load_checkpoint(path)
    pooler = getattr(checkpoint.model, "pooler", None)
    if pooler is None or any(name.startswith("pooler.") for name in checkpoint.absent):
        return {}
    weights: dict[str, Tensor] = pooler.state_dict()
    return weights


def _reader(checkpoint: PretrainedModel) -> Encoder | Decoder:
    """The part that reads text."""
    model: nn.Module = checkpoint.model
    return model if isinstance(model, Decoder) else encoder_of(model)
