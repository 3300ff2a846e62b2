"""Models whose parts are made ready: linear maps, tables, recurrences, encoders under a head."""

from copy import copy
from typing import TypeVar, cast

import torch
from torch import nn

from regard.kernels import why_not
from regard.layers import RecurrentEncoder, TokenEmbedding
from regard.models.encoder import Encoder
from regard.runtime.products.linear import PreparedEmbedding, PreparedLinear
from regard.runtime.recurrent.encoder import PreparedEncoder
from regard.runtime.transformer.reader import PreparedReader

ModelT = TypeVar("ModelT", bound=nn.Module)


def with_packed_modules(model: ModelT) -> ModelT:
    """The model with those parts made ready that can be; it shares all the others.

    Args:
        model: In evaluation mode. It is returned itself unless it is in float32 on a CPU.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval()
        >>> made = with_packed_modules(model)
        >>> type(made[0]).__name__, made[1] is model[1], type(model[0]).__name__
        ('PreparedLinear', True, 'Linear')
    """
    if why_not() is not None or any(
        each.device.type != "cpu" or each.dtype != torch.float32 for each in model.parameters()
    ):
        return model
    return cast(ModelT, _prepared(model, {}))


def _prepared(model: nn.Module, made: dict[nn.Module, nn.Module]) -> nn.Module:
    """A module, or one in its place; ``made`` has those of parts that stand in several places."""
    if model in made:
        return made[model]
    ready = model
    if isinstance(model, RecurrentEncoder):
        ready = PreparedEncoder(model)
    elif type(model) is TokenEmbedding:
        ready = PreparedEmbedding(model)
    elif type(model) is nn.Linear:
        ready = PreparedLinear(model)
    else:
        is_loop = isinstance(model, Encoder) and PreparedReader.refuse(model) is None
        parts = {
            name: part if part is None or (is_loop and name == "layers") else _prepared(part, made)
            for name, part in model._modules.items()
        }
        if any(part is not model._modules[name] for name, part in parts.items()):
            ready = copy(model)
            ready._modules = parts
        if is_loop:
            assert isinstance(ready, Encoder)
            ready = PreparedReader(ready)
    made[model] = ready.eval()
    return ready
