"""Evidence of a trace: the attention inside a call, its scores and its weights, and their lines."""

import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

TORCH = str(Path(torch.__file__).parent)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product of queries and keys: (…, N, D) by (…, D, M).

    Attributes:
        query: The left factor.
        key: The right factor.
        factor: The number that the operation itself multiplies by.
        is_broadcast: Whether it was written as a sum over a tensor of N×M×D.
        line: The line of code.
    """

    query: Tensor
    key: Tensor
    factor: float
    is_broadcast: bool
    line: str
    prescale: float = 1.0  # the earlier multiplier of both factors
    is_projected: bool = False  # both come out of a projection


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The way of a product to the softmax.

    Attributes:
        product: Where it began; None of scores that are no product.
        factor: The number by which it was multiplied; None if that was no number.
        steps: Further operations: (operation, the other operand, the line).
    """

    product: Product | None
    factor: float | None
    steps: tuple[tuple[str, Tensor | None, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """A normalisation: its input, its output and its axis."""

    scores: Tensor
    weights: Tensor
    axis: int
    origin: Scores | None
    line: str
    is_by_hand: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The way of the output of a softmax: the steps that change numbers or leave some out."""

    softmax: Softmax
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Weights that mix values.

    Attributes:
        kind: "softmax", "fused" of one function that does all, or "raw" of scores without softmax.
        origin: The scores.
        weights: The weights as they are used, (…, N, M); None where nobody made them.
        softmax: How they were made.
        steps: Operations on them between.
        index: The number of the operation that mixes.
        line: Its line.
        shape: The shape of its output, (…, N, E).
    """

    kind: str
    origin: Scores | None
    weights: Tensor | None
    softmax: Softmax | None
    steps: tuple[str, ...]
    index: int
    line: str
    shape: tuple[int, ...]
    mask: Tensor | None = None
    is_causal: bool = False
    exponential: int | None = None  # the exponential that the weights are, by its id


@dataclass(eq=False)
class Traced:
    """Findings of a trace."""

    attentions: list[Attention] = field(default_factory=list)
    softmaxes: list[Softmax] = field(default_factory=list)
    random: list[tuple[str, str]] = field(default_factory=list)
    first_bad: str = ""  # the line of the first operation with a NaN
    detached: list[str] = field(default_factory=list)
    in_place: list[str] = field(default_factory=list)  # lines that change an input
    failed: str = ""  # why some operation could not be read
    normalised: set[int] = field(default_factory=set)  # exponentials whose sum something divides by
    operands: set[int] = field(default_factory=set)  # of parameters, by their id
    engine: list[Any] = field(default_factory=list)  # calls of regard's own engine
    outers: list[tuple[tuple[int, ...], str]] = field(default_factory=list)


def lines_of(traced: Traced, *, masks: bool = False) -> tuple[str, ...]:
    """The lines that make weights, or that mask scores before."""
    lines = list[str]()
    for attention in traced.attentions:
        steps = attention.origin.steps if attention.origin is not None else ()
        if masks:
            masking = ("masked_fill", "where", "index_put", "multiplied", "add", "tril", "triu")
            lines += [line for name, _, line in steps if name in masking]
        lines.append(attention.softmax.line if attention.softmax is not None else attention.line)
    lines += [softmax.line for softmax in traced.softmaxes] if not lines else []
    return tuple(dict.fromkeys(filter(None, lines)))[:3]


def is_flags(tensor: Tensor) -> bool:
    """Whether a tensor holds zeros and ones, and both."""
    if tensor.dtype == torch.bool:
        return True
    values = tensor.detach()
    both = bool((values == 0).any()) and bool((values == 1).any())
    return both and bool(((values == 0) | (values == 1)).all())


@cache
def line_of(file: str, number: int) -> str:
    """A line of code as a report quotes it."""
    code = linecache.getline(file, number).strip()
    return f"{Path(file).name}:{number}: {code}" if code else f"{Path(file).name}:{number}"


def sizes(shape: Sequence[int]) -> str:
    """Format a shape: 2×12×64."""
    return "×".join(map(str, shape))


_HERE = str(Path(__file__).parent)
_ENGINE = str(Path(__file__).parents[1])


def tensors_in(args: Sequence[Any]) -> list[Tensor]:
    """The tensors among arguments, in lists and tuples too."""
    tensors = list[Tensor]()
    for argument in args:
        if isinstance(argument, Tensor):
            tensors.append(argument)
        elif isinstance(argument, list | tuple):
            tensors += tensors_in(argument)
    return tensors


def detaches(line: str) -> bool:
    """Whether a line of code itself detaches."""
    return "detach(" in line or ".data" in line


def storage_of(tensor: Tensor) -> int:
    """The address of the storage of a tensor."""
    return tensor.untyped_storage().data_ptr()


def number_in(value: Any) -> float | None:
    """The number that an operand is, or that a tensor of one element holds."""
    if isinstance(value, bool | int | float):
        return float(value)
    is_one = isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex()
    return float(value) if is_one else None


def is_over_pairs(left: Tensor, right: Tensor, out: Tensor) -> bool:
    """Whether a product is over pairs: larger than both of its factors, by two axes."""
    return out.dim() >= 3 and out.numel() > max(left.numel(), right.numel(), 1)


def calling_line() -> tuple[str, bool]:
    """The line of the caller's code that runs, and whether the engine of regard runs for it."""
    frame: FrameType | None = sys._getframe(3)
    library = ""
    is_engine = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_HERE):
            if frame.f_code.co_name == "run":
                break
        elif file.startswith(_ENGINE):
            is_engine = True
        elif not file.startswith(TORCH) and not file.startswith("<frozen"):
            if "site-packages" not in file:
                return line_of(file, frame.f_lineno), is_engine
            library = library or line_of(file, frame.f_lineno)
        frame = frame.f_back
    return library, is_engine
