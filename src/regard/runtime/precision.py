"""In what numbers a model's weights are kept while it is used."""

from typing import TypeVar

import torch
from torch import nn

from regard.choices import check_choice
from regard.errors import SettingError
from regard.kernels import why_not
from regard.layers import TokenEmbedding
from regard.layers.block import TransformerBlock
from regard.layers.choices import Precision
from regard.layers.precision import multiplies_bfloat16
from regard.models.decoder import Decoder
from regard.models.transformer import Transformer
from regard.runtime.memory import hand_back
from regard.runtime.products.int8 import Int8Embedding, Int8Linear

ModelT = TypeVar("ModelT", bound=nn.Module)


def in_precision(model: ModelT, precision: Precision) -> ModelT:
    """Convert a model's weights to another precision, in place.

    Of ``int8`` those of the layers of Transformers, of their embeddings and of their last layer;
    norms, biases and what is no Transformer stay as they are. ``auto`` rounds nothing: it is
    float32.

    Args:
        model: In use, and not in training: what is rounded learns no more.
        precision: See there.

    Raises:
        SettingError: There is no such precision, or the processor or the model cannot do it.

    Example:
        >>> from regard.models import DecoderConfig
        >>> model = Decoder(DecoderConfig(num_layers=1), vocab_size=11).eval()
        >>> in_precision(model, "int8").layers[0].feed.inner
        Int8Linear(256, 1024, bias=True)
        >>> in_precision(nn.Linear(2, 3), "int8")
        Traceback (most recent call last):
        regard.errors.SettingError: precision must be one for this model; got int8, but it has no
        layers of a Transformer. Use float32.
    """
    check_choice("precision", precision, Precision)
    if precision == "bfloat16":
        device = next(model.parameters()).device
        if not multiplies_bfloat16(device):
            raise SettingError(
                "precision must be one that the processor multiplies; got bfloat16, which takes "
                "this one six to eight times as long as float32. Use int8."
            )
        return model.to(torch.bfloat16)
    if precision == "int8":
        _round(model)
        hand_back()
    return model


def _round(model: nn.Module) -> None:
    if (reason := why_not()) is not None:
        raise SettingError(f"precision must be one that can be had; got int8, but {reason}.")
    blocks = [each for each in model.modules() if isinstance(each, TransformerBlock)]
    if not blocks or any(p.device.type != "cpu" for p in model.parameters()):
        reason = "it is on a GPU" if blocks else "it has no layers of a Transformer"
        raise SettingError(
            f"precision must be one for this model; got int8, but {reason}. Use float32."
        )
    mixes_embeddings = isinstance(model, Transformer) and model.config.values == "embeddings"
    for block in blocks:
        _replace(block.attend, "query_key_value", "output")
        _replace(block.feed, "inner", "outer")
        if block.look is not None:
            # Keys and values of two inputs take a part of one matrix each.
            of_memory = () if mixes_embeddings else ("key_value",)
            _replace(block.look, "query", "output", *of_memory)
    if isinstance(model, Transformer):
        _replace_tables(model, ("source_embedding", "target_embedding", "output"))
    elif isinstance(model, Decoder):
        _replace_tables(model, ("embedding", "output"))


def _replace(layer: nn.Module, *names: str) -> None:
    """Put a linear map in int8 in the place of each of these."""
    for name in names:
        linear = layer.get_submodule(name)
        if isinstance(linear, nn.Linear):
            layer._modules[name] = Int8Linear(linear)


def _replace_tables(model: nn.Module, names: tuple[str, ...]) -> None:
    """Convert embedding tables, some of which are tied."""
    made: dict[nn.Module, Int8Embedding] = {}
    tables = {name: model.get_submodule(name) for name in names}
    for name, table in tables.items():
        if not isinstance(table, TokenEmbedding):
            continue
        if table not in made:
            made[table] = Int8Embedding(table.weight, table.scale)
        model._modules[name] = made[table]
