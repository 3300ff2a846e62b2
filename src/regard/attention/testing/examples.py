"""Inputs for a module of which nothing is known but its code: shapes that it runs on."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.testing.call import evaluating, quiet
from regard.attention.testing.evidence import sizes
from regard.attention.testing.inputs import modules_of
from regard.errors import SettingError

B, N, C, H = 2, 12, 64, 4
_MASK = re.compile(r"(?i)mask|valid|keep")
_LENGTHS = re.compile(r"(?i)len")


def infer_inputs(module: Callable[..., Any]) -> tuple[tuple[Tensor, ...], str]:
    """Inputs of the first usual shapes that a module runs on, and a sentence that says which.

    Tried are token ids where it has an embedding, states (B, N, C) as wide as its first layer,
    heads (B, H, N, D), pictures, and single sequences; masks are all true, and lengths whole.

    Args:
        module: A module or a function of tensors.

    Raises:
        SettingError: It runs on none of them; the message has the last error.

    Example:
        >>> inputs, text = infer_inputs(nn.Linear(8, 3))
        >>> text
        'floats of 2×12×8'
    """
    names = _required(module)
    failed = "it takes no arguments" if not names else ""
    for content in _contents(module) if names else ():
        generator = torch.Generator().manual_seed(0)
        inputs = tuple(_input(name, content, generator) for name in names)
        try:
            with quiet(0), evaluating(modules_of(module)):
                module(*(tensor.clone() for tensor in inputs))
        except Exception as error:
            failed = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            continue
        return inputs, ", ".join(map(_described, inputs))
    raise SettingError(
        f"NAME must run on floats of 2×12×64 or on token ids of 2×12; got {failed}. "
        "Write its inputs into the file as NAME_inputs = (…)."
    )


def _required(module: Callable[..., Any]) -> list[str]:
    function = module.forward if isinstance(module, nn.Module) else module
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["input"]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in positional if p.default is p.empty]
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return names or [p.name for p in positional[:1]] or (["input"] if is_variadic else [])


def _contents(module: Callable[..., Any]) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Shapes of content in the order of trying, each with the number of ids if it is of ids."""
    parts = [part for submodule in modules_of(module) for part in submodule.modules()]
    tables = [part.num_embeddings for part in parts if isinstance(part, nn.Embedding)]
    if tables:
        yield (B, N), min(tables)
        yield (B, N), max(tables)
    widths = [part.embed_dim for part in parts if isinstance(part, nn.MultiheadAttention)]
    widths += [part.in_features for part in parts if isinstance(part, nn.Linear)]
    widths += [part.input_size for part in parts if isinstance(part, nn.RNNBase)]
    for width in dict.fromkeys([*widths[:4], C]):
        yield (B, N, width), None
    yield (B, H, N, C // H), None
    channels = [part.in_channels for part in parts if isinstance(part, nn.Conv2d)]
    for size in (32, 224, 28) if channels else ():
        yield (B, channels[0], size, size), None
    yield (N, C), None
    yield (N,), None
    yield (B, N), 32


def _input(
    name: str, content: tuple[tuple[int, ...], int | None], generator: torch.Generator
) -> Tensor:
    shape, ids = content
    if _LENGTHS.search(name):
        return torch.full((B,), N)
    if _MASK.search(name):
        return torch.ones(B, N, dtype=torch.bool)
    if ids is not None:
        return torch.randint(min(1, ids - 1), ids, shape, generator=generator)
    return torch.randn(shape, generator=generator)


def _described(tensor: Tensor) -> str:
    kind = {torch.bool: "a mask", torch.long: "whole numbers"}.get(tensor.dtype, "floats")
    return f"{kind} of {sizes(tensor.shape)}"
