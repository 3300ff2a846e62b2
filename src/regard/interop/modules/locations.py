"""Location of an attention module in its model, and the call that it makes now."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from weakref import finalize

import torch
from torch import nn

from regard.interop.modules.lazy_mask import LazyMask

# Names of attention from a decoder to an encoder, in the last two parts of a module's name.
_CROSS = re.compile(r"cross|encoder_attn|enc_attn|encdec|enc_dec|encoder_decoder|multihead_attn")

# A module's arguments, by position and by name.
Arguments = tuple[object, ...]
Options = dict[str, object]


class Location(NamedTuple):
    """Location of an attention module."""

    name: str
    layer: int  # from 0, as the model counts them
    is_cross: bool  # by its name: keys of another sequence than its queries


class ModuleCall(NamedTuple):
    """A call of a Hugging Face model's attention."""

    module: nn.Module
    location: Location
    lazy: LazyMask | None  # None where the model made a tensor or nothing


_call: ContextVar[ModuleCall | None] = ContextVar("call", default=None)

# Filled for a whole model at once, read in every call of one of its modules; by their ids, which a
# compiler can look up, for as long as they live.
_locations: dict[int, Location] = {}


def current_call() -> ModuleCall | None:
    """Return the call of a Hugging Face model's attention that is being served."""
    return _call.get()


@contextmanager
def calling(module: nn.Module, location: Location, lazy: LazyMask | None) -> Iterator[None]:
    """Say which call of a model's attention is made inside the block."""
    token = _call.set(ModuleCall(module, location, lazy))
    try:
        yield
    finally:
        _call.reset(token)


# Of the model that a block of this thread is about, which may be a part of another thread's.
_here: ContextVar[dict[int, Location] | None] = ContextVar("here", default=None)


@contextmanager
def located(model: nn.Module) -> Iterator[None]:
    """Locate the modules of a model inside the block, in this thread by their names in it."""
    token = _here.set(locate_modules(model))
    try:
        yield
    finally:
        _here.reset(token)


def locate_modules(model: nn.Module) -> dict[int, Location]:
    """Note the location of each module of a model."""
    here: dict[int, Location] = {}
    stacks: dict[str, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        stacks.setdefault(re.sub(r"\d+", "*", name), []).append((name, module))
    for stack in stacks.values():
        for layer, (name, module) in zip(_layers([name for name, _ in stack]), stack, strict=True):
            is_cross = bool(_CROSS.search(".".join(name.lower().split(".")[-2:])))
            if id(module) not in _locations:
                finalize(module, _locations.pop, id(module), None)
            here[id(module)] = _locations[id(module)] = Location(name, layer, is_cross)
    return here


def location_of(module: nn.Module) -> Location:
    """Return a module's location in the model, or the layer that the module itself names."""
    location = _locations.get(id(module))
    if not torch.compiler.is_compiling() and (here := _here.get()) is not None:
        location = here.get(id(module), location)
    if location is None:
        layer = getattr(module, "layer_idx", None)
        location = Location("", layer if isinstance(layer, int) else -1, is_cross=False)
    return location


def _layers(names: list[str]) -> Iterator[int]:
    """Number the modules of a stack, whose names differ in their numbers only."""
    numbers = [[int(digits) for digits in re.findall(r"\d+", name)] for name in names]
    differing = [n for n, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
    if len(differing) > 1 or not numbers[0]:  # experts in layers, say: count them
        yield from range(len(names))
        return
    axis = differing[0] if differing else 0
    yield from (row[axis] for row in numbers)
