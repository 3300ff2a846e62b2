"""Models some of whose modules are packed: linear maps, tables, recurrences, encoders."""

from copy import copy
from typing import TypeVar, cast

from torch import nn

from regard.layers import RecurrentEncoder, TokenEmbedding
from regard.models.readers import Encoder
from regard.runtime.base import why_not_packed
from regard.runtime.products import PackedEmbedding, PackedLinear
from regard.runtime.recurrent.decoder import PreparedEncoder
from regard.runtime.transformer.reader import PreparedReader

ModelT = TypeVar("ModelT", bound=nn.Module)


def with_packed_modules(model: ModelT) -> ModelT:
    """The model with packed linear maps, tables, recurrences and encoders, if it is in float32."""
    reason = why_not_packed(model.parameters(), {})
    return model if reason else cast(ModelT, _packed(model, {}))


def _packed(module: nn.Module, packed_modules: dict[nn.Module, nn.Module]) -> nn.Module:
    """A module, or one in its place; ``packed_modules`` has those that stand in several places."""
    if module in packed_modules:
        return packed_modules[module]
    packed = module
    if isinstance(module, RecurrentEncoder):
        packed = PreparedEncoder(module)
    elif type(module) is TokenEmbedding:
        packed = PackedEmbedding(module)
    elif type(module) is nn.Linear:
        packed = PackedLinear(module)
    else:
        is_loop = isinstance(module, Encoder) and PreparedReader.refuse(module) is None
        parts = {
            name: part
            if part is None or (is_loop and name == "layers")
            else _packed(part, packed_modules)
            for name, part in module._modules.items()
        }
        if any(part is not module._modules[name] for name, part in parts.items()):
            packed = copy(module)
            packed._modules = parts
        if is_loop:
            assert isinstance(packed, Encoder)
            packed = PreparedReader(packed)
    packed_modules[module] = packed.eval()
    return packed
