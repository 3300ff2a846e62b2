"""Where in a model an attention module is: its name, its layer, what it attends to."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from weakref import finalize

from torch import nn

# What attention from a decoder to an encoder is called, in the last two parts of a module's name.
_CROSS = re.compile(r"cross|encoder_attn|enc_attn|encdec|enc_dec|encoder_decoder|multihead_attn")


# What a hook of a module is told of a call: what it was given by place, and by name.
Arguments = tuple[object, ...]
Options = dict[str, object]


class Place(NamedTuple):
    """Where an attention module is.

    Attributes:
        name: Its name in the model.
        layer: Which layer, from 0, as the model counts them.
        is_cross: Whether its keys are of another sequence than its queries, by its name.
    """

    name: str
    layer: int
    is_cross: bool


# Filled for a whole model at once, read in every call of one of its modules; by their ids, which a
# compiler can look up, for as long as they live.
_places: dict[int, Place] = {}


def settle(model: nn.Module) -> None:
    """Note where each module of a model is."""
    stacks: dict[str, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        stacks.setdefault(re.sub(r"\d+", "*", name), []).append((name, module))
    for stack in stacks.values():
        for layer, (name, module) in zip(_layers([name for name, _ in stack]), stack, strict=True):
            is_cross = bool(_CROSS.search(".".join(name.lower().split(".")[-2:])))
            if id(module) not in _places:
                finalize(module, _places.pop, id(module), None)
            _places[id(module)] = Place(name, layer, is_cross)


def place_of(module: nn.Module) -> Place:
    """Where a module is in the model it was settled with; by itself, what it says of itself."""
    found = _places.get(id(module))
    if found is None:
        layer = getattr(module, "layer_idx", None)
        found = Place("", layer if isinstance(layer, int) else -1, is_cross=False)
    return found


def _layers(names: list[str]) -> Iterator[int]:
    """The layer of each module of a stack, whose names differ in their numbers only.

    Where one of the numbers differs, that is the layer; where several do, layers are counted. Where
    there is one module only, its first number is, if it has any.
    """
    numbers = [[int(digits) for digits in re.findall(r"\d+", name)] for name in names]
    differing = [n for n, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
    if len(differing) > 1 or not numbers[0]:
        yield from range(len(names))
        return
    which = differing[0] if differing else 0
    yield from (row[which] for row in numbers)
